import { Command } from 'commander';
import { indexesFolder } from '../../config/index.js';
import { NotFoundError } from '../../errors.js';
import { indexFolder, removeFromIndex } from '../../retrieval/index.js';
import { contextOf } from '../context.js';
import { counted } from '../counted.js';

export function removeCommand(): Command {
  return new Command('remove')
    .description('remove passages from an index by id')
    .argument('<id...>', 'passage ids')
    .option('-i, --index <name>', 'name or folder (default: retrieval.index)')
    .action(async (ids: string[], flags: { readonly index?: string }, self: Command) => {
      const { config, output } = contextOf(self);
      const folder = indexFolder(indexesFolder(config), flags.index ?? config.retrieval.index);
      const result = await removeFromIndex(folder, ids);
      const { name, removed, passageCount, unknown } = result;
      if (unknown.length < ids.length)
        output.result(result, `removed ${removed}; index "${name}" has ${counted(passageCount, 'passage')}`);
      if (unknown.length > 0)
        throw new NotFoundError(
          `index "${name}" has no passage ${unknown.map((id) => `"${id}"`).join(', ')}`,
        );
    });
}
