import { join } from 'node:path';
import { Command, Option } from 'commander';
import { homeFolder } from '../config/index.js';
import { ConfigError, UnsupportedError } from '../errors.js';
import { ensureModel, readAdapter } from '../model/index.js';
import {
  exportAdapter,
  exportGguf,
  exportSafetensors,
  holdsWholeWeights,
  openDecoderWeights,
} from '../training/index.js';
import { contextOf } from './context.js';

interface ExportFlags {
  readonly output: string;
  readonly adapter?: string;
  readonly merged: boolean;
  readonly type: 'f32' | 'f16';
  readonly gguf: 'f32' | 'f16' | 'q8_0';
  readonly base?: string;
}

/** `models export`: a policy for other tools, or its adapter alone. */
export function exportCommand(): Command {
  return new Command('export')
    .description('write an adapter (PEFT), or with --merged a whole policy (safetensors and GGUF)')
    .argument('[id]', 'model; absent: model.policy')
    .requiredOption('-o, --output <folder>', 'folder to write')
    .option(
      '-a, --adapter <folder>',
      'PEFT folder, or a checkpoint of a run (of whole weights: with --merged)',
    )
    .option('--merged', 'the model with what was trained in its weights', false)
    .addOption(new Option('--type <type>', 'numbers in safetensors').choices(['f32', 'f16']).default('f16'))
    .addOption(new Option('--gguf <type>', 'numbers in GGUF').choices(['f32', 'f16', 'q8_0']).default('f16'))
    .option('--base <name>', 'name of the base model in adapter_config.json, such as its hub id')
    .action(async (id: string | undefined, flags: ExportFlags, self: Command) => {
      const { config, output, signal } = contextOf(self);
      const { merged, adapter = null } = flags;
      const progress = output.progress();
      const start = { onProgress: progress.on, onNote: output.note, signal };
      const model = await ensureModel(id ?? config.model.policy, homeFolder(config), start).finally(() =>
        progress.stop(),
      );
      const type = flags.type === 'f32' ? 'F32' : 'F16';
      if (!merged) {
        if (adapter === null) throw new ConfigError('nothing to export: give --adapter, --merged or both');
        if (holdsWholeWeights(adapter))
          throw new ConfigError(`${adapter} holds whole weights and no adapter: add --merged`);
        const source = model.openWeights();
        try {
          // Refuses what would not load again.
          readAdapter(adapter, openDecoderWeights(model, source).config);
        } finally {
          source.close();
        }
        await exportAdapter(adapter, flags.output, type, flags.base);
        return output.result({ adapter: flags.output }, `adapter  ${flags.output}`);
      }
      const gguf = join(flags.output, `${model.record.id}.gguf`);
      const ggufType = flags.gguf === 'q8_0' ? 'Q8_0' : flags.gguf === 'f32' ? 'F32' : 'F16';
      const { written, notWritten } = await writeAll({
        safetensors: [flags.output, () => exportSafetensors({ model, adapter }, flags.output, type)],
        gguf: [gguf, () => exportGguf({ model, adapter }, gguf, ggufType)],
      });
      const lines = [
        ...Object.entries(written),
        ...Object.entries(notWritten).map(([format, why]) => [format, `not written: ${why}`] as const),
      ].map(([format, text]) => `${format.padEnd(11)}  ${text}`);
      output.result({ ...written, notWritten }, lines.join('\n'));
    });
}

type Writes = Readonly<Record<string, readonly [path: string, write: () => Promise<void>]>>;

interface Written {
  /** Paths by format. */
  readonly written: Readonly<Record<string, string>>;
  /** Reasons by format. */
  readonly notWritten: Readonly<Record<string, string>>;
}

/**
 * Writes each format that can hold the model.
 * @throws {UnsupportedError} none can
 */
async function writeAll(writes: Writes): Promise<Written> {
  const written: Record<string, string> = {};
  const notWritten: Record<string, string> = {};
  for (const [format, [path, write]] of Object.entries(writes))
    try {
      await write();
      written[format] = path;
    } catch (error) {
      if (!(error instanceof UnsupportedError)) throw error;
      notWritten[format] = error.message;
    }
  if (Object.keys(written).length === 0) throw new UnsupportedError(Object.values(notWritten).join('; '));
  return { written, notWritten };
}
