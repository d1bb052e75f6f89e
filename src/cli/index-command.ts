import { basename, dirname, join, resolve } from 'node:path';
import { Command } from 'commander';
import { type Config, indexesFolder } from '../config/index.js';
import { InvalidInputError, NotFoundError } from '../errors.js';
import {
  addToIndex,
  buildIndex,
  createRetriever,
  describeIndex,
  type IndexFault,
  type IndexSummary,
  indexFolder,
  listIndexes,
  locateEncoder,
  openParallelEmbedder,
  removeFromIndex,
  verifyIndex,
} from '../retrieval/index.js';
import { contextOf } from './context.js';
import { counted } from './counted.js';
import { pullCommand } from './index-pull.js';
import { wholeNumber } from './numbers.js';
import { withProgress } from './progress-rate.js';

/** `index pull | build | list | info | verify | search | add | remove`: makes, checks and changes search indexes. */
export function indexCommand(): Command {
  return new Command('index')
    .description('build, check, search and change indexes of passages')
    .addCommand(pullCommand())
    .addCommand(buildCommand())
    .addCommand(listCommand())
    .addCommand(infoCommand())
    .addCommand(verifyCommand())
    .addCommand(searchCommand())
    .addCommand(addCommand())
    .addCommand(removeCommand());
}

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

function buildCommand(): Command {
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
    .option('--m <links>', 'links of a passage in the graph (default: 16)', wholeNumber(1))
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

function listCommand(): Command {
  return new Command('list')
    .description('built indexes in the index folder')
    .action(async (_flags: unknown, self: Command) => {
      const { config, output } = contextOf(self);
      const found = await listIndexes(indexesFolder(config));
      const text = found.map((item) => ('error' in item ? faultText(item) : summaryText(item))).join('\n');
      output.result(found, text === '' ? `no index in ${indexesFolder(config)}` : text);
    });
}

function infoCommand(): Command {
  return new Command('info')
    .description('what an index holds and how it was built')
    .argument('[index]', 'name or folder (default: retrieval.index)')
    .action(async (name: string | undefined, _flags: unknown, self: Command) => {
      const { config, output } = contextOf(self);
      const summary = await describeIndex(indexFolder(indexesFolder(config), name ?? config.retrieval.index));
      output.result(summary, infoText(summary));
    });
}

function verifyCommand(): Command {
  return new Command('verify')
    .description('read a whole index and check all of it against its manifest')
    .argument('[index]', 'name or folder (default: retrieval.index)')
    .action(async (name: string | undefined, _flags: unknown, self: Command) => {
      const context = contextOf(self);
      const { config, output } = context;
      const folder = indexFolder(indexesFolder(config), name ?? config.retrieval.index);
      await withProgress(context, async (onProgress) => {
        const manifest = await verifyIndex(folder, onProgress);
        output.result({ folder, manifest }, `index "${manifest.name}" in ${folder} is sound`);
      });
    });
}

interface SearchFlags {
  readonly index?: string;
  readonly kind?: string;
  readonly k: number;
}

function searchCommand(): Command {
  return new Command('search')
    .description('search an index')
    .argument('<query...>', 'what to look for')
    .option('-i, --index <name>', 'name or folder (default: retrieval.index)')
    .option('--kind <kind>', 'hnsw, bm25, hybrid or remote (default: retrieval.kind)')
    .option('-k <count>', 'passages', wholeNumber(1), 3)
    .action(async (words: string[], flags: SearchFlags, self: Command) => {
      const context = contextOf(self, { 'retrieval.index': flags.index, 'retrieval.kind': flags.kind });
      await withProgress(context, async (onProgress) => {
        const retriever = await createRetriever(context.config, { onProgress, signal: context.signal });
        try {
          const [passages] = await retriever.search([words.join(' ')], flags.k, { signal: context.signal });
          const shown = (passages ?? []).map(
            ({ id, title, text, score }, i) =>
              `${i + 1}. ${title || id}  [${id}, ${score.toFixed(4)}]\n   ${text}`,
          );
          context.output.result(
            { index: retriever.info, snapshotId: retriever.snapshotId, passages },
            shown.length === 0 ? 'nothing found' : shown.join('\n'),
          );
        } finally {
          await retriever.close();
        }
      });
    });
}

interface AddFlags {
  readonly input: string;
  readonly index?: string;
  readonly skipBad: boolean;
}

function addCommand(): Command {
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

function removeCommand(): Command {
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

function summaryText({ folder, manifest, passageCount }: IndexSummary): string {
  const { name, embedder, graph } = manifest;
  return `${name}: ${counted(passageCount, 'passage')}, ${embedder.id} (${graph.dimension}), ${folder}`;
}

function faultText({ folder, error }: IndexFault): string {
  return `${folder}: not usable: ${error}`;
}

function infoText({ folder, manifest, passageCount, snapshotId, revision }: IndexSummary): string {
  const { source, embedder, graph } = manifest;
  const rows: [string, string | number][] = [
    ['index', `${manifest.name} (${folder})`],
    ['passages', passageCount],
    ['snapshot', snapshotId],
    ['changes', revision],
    ['built', `${manifest.createdAt} from ${source.name} (${source.kind}, ${source.bytes} bytes)`],
    ['left out', `${source.skippedEntries} bad, ${source.duplicateEntries} repeated entries`],
    ['embedder', `${embedder.id} (${embedder.digest.slice(0, 12)})`],
    [
      'graph',
      `${graph.metric}, dimension ${graph.dimension}, M ${graph.M}, efConstruction ${graph.efConstruction}`,
    ],
    ['files', `${manifest.passages.file}, ${graph.file} (${graph.bytes} bytes)`],
  ];
  return rows.map(([key, value]) => `${key.padEnd(9)} ${value}`).join('\n');
}
