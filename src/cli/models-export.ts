import { join } from 'node:path';
import { Command, Option } from 'commander';
import { homeFolder } from '../config/index.js';
import { ConfigError } from '../errors.js';
import { ensureModel, readAdapter } from '../model/index.js';
import { exportAdapter, exportGguf, exportSafetensors, openDecoderWeights } from '../training/index.js';
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
    .option('-a, --adapter <folder>', 'PEFT folder, such as a checkpoint of a run')
    .option('--merged', 'the model with the adapter added into its weights', false)
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
      await exportSafetensors({ model, adapter }, flags.output, type);
      await exportGguf(
        { model, adapter },
        gguf,
        flags.gguf === 'q8_0' ? 'Q8_0' : flags.gguf === 'f32' ? 'F32' : 'F16',
      );
      output.result(
        { safetensors: flags.output, gguf },
        `safetensors  ${flags.output}\nGGUF         ${gguf}`,
      );
    });
}
