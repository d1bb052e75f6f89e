import { Command } from 'commander';
import { indexesFolder } from '../../config/index.js';
import { addToIndex, indexFolder, locateEncoder, openParallelEmbedder } from '../../retrieval/index.js';
import { contextOf } from '../context.js';
import { counted } from '../counted.js';
import { withProgress } from '../progress-rate.js';

interface AddFlags {
  readonly input: string;
  readonly index?: string;
  readonly skipBad: boolean;
}

export function addCommand(): Command {
  return new Command('add')
    .description('add passages to an index, or replace those of the same id')
    .requiredOption('--input <path>', 'passages, in any form that build reads')
    .option('-i, --index <name>', 'name or folder (default: retrieval.index)')
    .option('--skip-bad', 'leave out entries that cannot be read', false)
    .action(async (flags: AddFlags, self: Command) => {
      const context = contextOf(self);
      const { config, output, signal } = context;
      const folder = indexFolder(indexesFolder(config), flags.index ?? config.retrieval.index);
      await withProgress(context, async (onProgress) => {
        const embedder = await openParallelEmbedder(await locateEncoder(config, { onProgress, signal }));
        try {
          const { input, skipBad } = flags;
          const result = await addToIndex({ folder, input, skipBad, embedder, onProgress, signal });
          output.result(
            result,
            `added ${result.added}; index "${result.name}" has ${counted(result.passageCount, 'passage')}`,
          );
        } finally {
          await embedder.close();
        }
      });
    });
}
