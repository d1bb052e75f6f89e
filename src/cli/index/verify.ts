import { Command } from 'commander';
import { indexesFolder } from '../../config/index.js';
import { indexFolder, verifyIndex } from '../../retrieval/index.js';
import { contextOf } from '../context.js';
import { withProgress } from '../progress-rate.js';

export function verifyCommand(): Command {
  return new Command('verify')
    .description('read a whole index and check all of it against its manifest')
    .argument('[index]', 'name or folder (default: retrieval.index)')
    .action(async (name: string | undefined, _flags: unknown, self: Command) => {
      const context = contextOf(self);
      const { config, output, signal } = context;
      const folder = indexFolder(indexesFolder(config), name ?? config.retrieval.index);
      await withProgress(context, async (onProgress) => {
        const manifest = await verifyIndex(folder, { onProgress, signal });
        output.result({ folder, manifest }, `index "${manifest.name}" in ${folder} is sound`);
      });
    });
}
