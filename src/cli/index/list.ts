import { Command } from 'commander';
import { indexesFolder } from '../../config/index.js';
import { type IndexFault, listIndexes } from '../../retrieval/index.js';
import { contextOf } from '../context.js';
import { summaryText } from './summary-text.js';

export function listCommand(): Command {
  return new Command('list')
    .description('built indexes in the index folder')
    .action(async (_flags: unknown, self: Command) => {
      const { config, output } = contextOf(self);
      const found = await listIndexes(indexesFolder(config));
      const text = found.map((item) => ('error' in item ? faultText(item) : summaryText(item))).join('\n');
      output.result(found, text === '' ? `no index in ${indexesFolder(config)}` : text);
    });
}

function faultText({ folder, error }: IndexFault): string {
  return `${folder}: not usable: ${error}`;
}
