import { Command, Option } from 'commander';
import { homeFolder } from '../config/index.js';
import { IntegrityError } from '../errors.js';
import {
  type GivenConventions,
  importManifest,
  importModel,
  listModels,
  type ModelRecord,
  removeModel,
  type StoredModel,
  verifyModel,
} from '../model/index.js';
import { findManifest, manifestIds } from '../weights/index.js';
import { contextOf } from './context.js';
import { wholeNumber } from './flag-values.js';
import { exportCommand } from './models-export.js';

/** `models pull | add | list | verify | remove | export`. */
export function modelsCommand(): Command {
  const command = new Command('models').description('fetch, import, list, check, remove and export models');
  command.addCommand(pullCommand());
  command.addCommand(addCommand());
  command.addCommand(listCommand());
  command.addCommand(verifyCommand());
  command.addCommand(removeCommand());
  command.addCommand(exportCommand());
  return command;
}

function pullCommand(): Command {
  return new Command('pull')
    .description('fetch and import models that have a manifest; without a name those that the settings use')
    .argument('[id...]', 'manifest ids')
    .action(async (ids: string[], _options, self: Command) => {
      const { config, output, signal } = contextOf(self);
      const configured = [config.model.policy, config.model.embedder].filter((id) =>
        manifestIds().includes(id),
      );
      const manifests = (ids.length > 0 ? ids : configured).map((id) => findManifest(id));
      const progress = output.progress();
      const models: StoredModel[] = [];
      try {
        for (const manifest of manifests)
          models.push(
            await importManifest(manifest, homeFolder(config), {
              onProgress: progress.on,
              onNote: output.note,
              signal,
            }),
          );
      } finally {
        progress.stop();
      }
      output.result(models.map(summary), models.map((model) => line(model.record)).join('\n'));
    });
}

interface AddFlags {
  readonly name?: string;
  readonly pooling?: 'mean' | 'cls';
  readonly queryPrefix?: string;
  readonly passagePrefix?: string;
  readonly maxTokens?: number;
  readonly normalise?: boolean;
}

function addCommand(): Command {
  return new Command('add')
    .description(
      'import a folder, a .gguf or .safetensors file, or owner/name[/file.gguf][@revision] of the hub',
    )
    .argument('<source>', 'folder, file or hub id')
    .option('--name <name>', 'name of the model here')
    .addOption(new Option('--pooling <how>', 'encoders: how tokens become a vector').choices(['mean', 'cls']))
    .option('--query-prefix <text>', 'encoders: put before a question')
    .option('--passage-prefix <text>', 'encoders: put before a passage')
    .option('--max-tokens <count>', 'encoders: longest input', wholeNumber(8))
    .option('--no-normalise', 'encoders: leave vectors at their length')
    .action(async (source: string, flags: AddFlags, self: Command) => {
      const { config, output, signal } = contextOf(self);
      const progress = output.progress();
      try {
        const model = await importModel(source, homeFolder(config), {
          id: flags.name,
          embedder: conventions(flags),
          onProgress: progress.on,
          onNote: output.note,
          signal,
        });
        progress.stop();
        output.result(summary(model), line(model.record));
      } finally {
        progress.stop();
      }
    });
}

/** Only what was said on the line; commander sets `normalise` to true when it was not. */
function conventions(flags: AddFlags): GivenConventions {
  const { pooling, queryPrefix, passagePrefix, maxTokens } = flags;
  return {
    ...(pooling === undefined ? {} : { pooling }),
    ...(queryPrefix === undefined ? {} : { queryPrefix }),
    ...(passagePrefix === undefined ? {} : { passagePrefix }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(flags.normalise === false ? { normalise: false } : {}),
  };
}

function listCommand(): Command {
  return new Command('list')
    .description('models that are imported, and manifests that can be pulled')
    .action(async (_options, self: Command) => {
      const { config, output } = contextOf(self);
      const records = await listModels(homeFolder(config));
      const imported = new Set(records.map(({ id }) => id));
      const available = manifestIds().filter((id) => !imported.has(id));
      output.result(
        { models: records, available },
        [
          ...records.map(line),
          ...available.map((id) => `${id}  not here yet: searchloop models pull ${id}`),
        ].join('\n'),
      );
    });
}

function verifyCommand(): Command {
  return new Command('verify')
    .description('read every byte of imported models and compare the sums; exit code 1 when one is damaged')
    .argument('[id...]', 'names; all when absent')
    .action(async (ids: string[], _options, self: Command) => {
      const { config, output, signal } = contextOf(self);
      const home = homeFolder(config);
      const names = ids.length > 0 ? ids : (await listModels(home)).map(({ id }) => id);
      const progress = output.progress();
      const results: { id: string; faults: string[] }[] = [];
      try {
        for (const id of names)
          results.push({ id, faults: await verifyModel(home, id, { onProgress: progress.on, signal }) });
      } finally {
        progress.stop();
      }
      output.result(
        results,
        results
          .map(({ id, faults }) =>
            faults.length === 0 ? `${id}  ok` : `${id}  damaged\n  ${faults.join('\n  ')}`,
          )
          .join('\n'),
      );
      const damaged = results.filter(({ faults }) => faults.length > 0).map(({ id }) => id);
      if (damaged.length > 0)
        throw new IntegrityError(`damaged: ${damaged.join(', ')}; remove them and pull or add them again`);
    });
}

function removeCommand(): Command {
  return new Command('remove')
    .description('remove imported models and what was built from them; the download cache keeps its files')
    .argument('<id...>', 'names')
    .action(async (ids: string[], _options, self: Command) => {
      const { config, output } = contextOf(self);
      for (const id of ids) await removeModel(homeFolder(config), id);
      output.result({ removed: ids }, ids.map((id) => `removed ${id}`).join('\n'));
    });
}

function summary({ record, folder }: StoredModel): unknown {
  return { ...record, folder };
}

function line({ id, kind, architecture, format, files, origin }: ModelRecord): string {
  const megabytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) / 1e6;
  return `${id}  ${kind} ${architecture} ${format}, ${megabytes.toFixed(1)} MB, ${origin}`;
}
