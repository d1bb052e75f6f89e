import { basename, dirname, join, resolve } from 'node:path';
import { Command } from 'commander';
import { type Config, indexesFolder } from '../../config/index.js';
import { InvalidInputError } from '../../errors.js';
import {
  buildIndex,
  demoIndexFolder,
  describeIndex,
  LINKS,
  locateEncoder,
  openParallelEmbedder,
} from '../../retrieval/index.js';
import { contextOf } from '../context.js';
import { wholeNumber } from '../flag-values.js';
import { withProgress } from '../progress-rate.js';
import { summaryText } from './summary-text.js';

interface BuildFlags {
  readonly input: string;
  readonly output?: string;
  readonly name?: string;
  readonly skipBad: boolean;
  readonly restart: boolean;
  readonly m?: number;
  readonly efConstruction?: number;
  readonly workers?: number;
}

export function buildCommand(): Command {
  return new Command('build')
    .description('build an index; after Ctrl-C or a crash the same command goes on')
    .requiredOption(
      '--input <path>',
      'JSONL of passages (plain or .gz), a Wikipedia dump (.xml, .xml.bz2), or a folder of .txt and .md files',
    )
    .option('-n, --name <name>', 'name of the index, which lies under it in the index folder')
    .option('-o, --output <folder>', 'another folder; its name is that of the index where --name gives none')
    .option('--skip-bad', 'count entries that cannot be read, and go on', false)
    .option('--restart', 'throw away an unfinished build in the folder', false)
    .option(
      '--m <links>',
      'links of a passage in the graph (default: 16)',
      wholeNumber(LINKS.least, LINKS.most),
    )
    .option(
      '--ef-construction <width>',
      'search width while the graph is built (default: 200)',
      wholeNumber(1),
    )
    .option('--workers <count>', 'embedding threads (default: one for each core)', wholeNumber(1))
    .action(async (flags: BuildFlags, self: Command) => {
      const context = contextOf(self);
      const { config, output, signal } = context;
      if (flags.output === undefined && flags.name === undefined)
        throw new InvalidInputError('expected --name or --output');
      const folder = resolve(flags.output ?? join(indexesFolder(config), flags.name as string));
      if (folder === demoIndexFolder(config))
        throw new InvalidInputError(
          'the index "demo" comes with the product, and the next start would put it back; give another --name',
        );
      await withProgress(context, async (onProgress) => {
        const encoder = await locateEncoder(config, { onProgress, signal });
        const embedder = await openParallelEmbedder(encoder, { workers: flags.workers });
        try {
          const { input, name, skipBad, restart, m, efConstruction } = flags;
          const options = { input, output: folder, name, skipBad, restart, M: m, efConstruction };
          const manifest = await buildIndex({ ...options, embedder, onProgress, signal });
          const use = `use it with --set retrieval.index=${settingOf(folder, config)}`;
          output.result({ folder, manifest }, `built: ${summaryText(await describeIndex(folder))}\n${use}`);
        } finally {
          await embedder.close();
        }
      });
    });
}

/** What `retrieval.index` must be for a server to find the folder, as a shell reads it. */
function settingOf(folder: string, config: Config): string {
  const name = basename(folder);
  const value = dirname(folder) === indexesFolder(config) && !isJson(name) ? name : folder;
  return /^[\w./@+-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}

/** Whether `--set` would take it for something else than a text, such as a number. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
