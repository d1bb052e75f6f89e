import { statfs } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import { homeFolder, indexesFolder } from '../../config/index.js';
import {
  type Corpus,
  corpusIds,
  type Embedder,
  findCorpus,
  locateEncoder,
  measureRates,
  openParallelEmbedder,
  pullCorpus,
  type Rates,
  type Reckoning,
  reckon,
} from '../../retrieval/index.js';
import { confirm } from '../confirm.js';
import { type CliContext, contextOf } from '../context.js';
import { counted } from '../counted.js';
import { withProgress } from '../progress-rate.js';

/** Without a known number of passages, figures are for this many. */
const SAMPLE_PASSAGES = 100_000;
/** Nothing was done, because nobody agreed to it. */
const NOT_CONFIRMED = 2;

interface PullFlags {
  readonly yes: boolean;
  readonly measure: boolean;
  readonly restart: boolean;
  readonly mirror?: string;
  readonly date?: string;
}

/** `index pull NAME`: says what an index of a named corpus would take, then fetches it and builds the index. */
export function pullCommand(): Command {
  return new Command('pull')
    .description('fetch a named corpus and build its index; after Ctrl-C or a crash the same command goes on')
    .argument('<name>', `one of ${corpusIds().join(', ')}`)
    .option('-y, --yes', 'do not ask', false)
    .option('--measure', "measure this machine's rates again", false)
    .option('--restart', 'throw away an unfinished build', false)
    .option('--mirror <address>', "another mirror of Wikimedia's dumps")
    .option('--date <YYYYMMDD>', 'the dump of this date (default: the latest)')
    .action(async (name: string, flags: PullFlags, self: Command) => {
      const context = contextOf(self);
      const corpus = findCorpus(name);
      await withEmbedder(context, async (embedder) => {
        const plan = await planOf(corpus, embedder, flags, context);
        if (!(await agreed(plan, flags, context))) {
          process.exitCode = NOT_CONFIRMED;
          return;
        }
        await pull(plan, embedder, flags, context);
      });
    });
}

async function withEmbedder(context: CliContext, work: (embedder: Embedder) => Promise<void>): Promise<void> {
  const { config, signal } = context;
  let embedder: Embedder | undefined;
  await withProgress(context, async (onProgress) => {
    embedder = await openParallelEmbedder(await locateEncoder(config, { onProgress, signal }));
  });
  try {
    await work(embedder as Embedder);
  } finally {
    await embedder?.close();
  }
}

interface Plan {
  readonly corpus: Corpus;
  readonly folder: string;
  readonly rates: Rates;
  /** For the corpus, or for a sample where its size is unknown. */
  readonly reckoning: Reckoning;
  readonly text: string;
}

async function planOf(
  corpus: Corpus,
  embedder: Embedder,
  { measure }: PullFlags,
  context: CliContext,
): Promise<Plan> {
  const { config, signal } = context;
  const home = homeFolder(config);
  let rates: Rates | undefined;
  await withProgress(context, async (onProgress) => {
    rates = await measureRates(embedder, { home, afresh: measure, onProgress, signal });
  });
  const folder = join(indexesFolder(config), corpus.id);
  const passages = corpus.about.passages ?? SAMPLE_PASSAGES;
  const reckoning = reckon(corpus, passages, rates as Rates, embedder.info.dimension);
  const free = await freeBytes(folder);
  const text = planText(corpus, rates as Rates, reckoning, free);
  return { corpus, folder, rates: rates as Rates, reckoning, text };
}

/** Of the disk that will hold the folder. */
async function freeBytes(folder: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch (error) {
    if (dirname(folder) === folder) throw error;
    return freeBytes(dirname(folder));
  }
}

function planText(corpus: Corpus, rates: Rates, reckoning: Reckoning, free: number): string {
  const { about, source } = corpus;
  const { embedSeconds, graphSeconds, memoryBytes, diskBytes, indexBytes } = reckoning;
  const from =
    source.type === 'dump'
      ? `${source.mirror}, the latest dump`
      : `the model hub, ${source.repo}/${source.file}`;
  const download =
    about.compressedBytes === null ? 'of unknown size' : `about ${gigabytes(about.compressedBytes)}`;
  const passages = reckoning.passages.toLocaleString('en');
  const warn = (needed: number, there: number): string =>
    needed > there ? `  NOT ENOUGH: there are ${gigabytes(there)}` : ` of ${gigabytes(there)}`;
  const rows: [string, string][] = [
    ['corpus', `${corpus.title} (${corpus.licence})`],
    ['from', `${from}; download ${download}`],
    [
      'passages',
      about.passages === null ? `unknown; what follows is for each ${passages}` : `about ${passages}`,
    ],
    [
      'hours',
      `about ${hours(embedSeconds + graphSeconds)}: embedding ${hours(embedSeconds)}, at ${rates.passagesPerSecond.toFixed(0)} passages/s measured here on ${rates.measuredAt.slice(0, 10)}; graph ${hours(graphSeconds)}. Download and reading come on top.`,
    ],
    ['memory', `about ${gigabytes(memoryBytes)}${warn(memoryBytes, totalmem())}`],
    [
      'disk',
      `about ${gigabytes(diskBytes)} while it is built, ${gigabytes(indexBytes)} for the index${warn(diskBytes, free)}`,
    ],
  ];
  return rows.map(([key, value]) => `${key.padEnd(9)} ${value}`).join('\n');
}

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(bytes < 1e10 ? 1 : 0)} GB`;
const hours = (seconds: number): string => (seconds / 3600).toFixed(seconds < 36_000 ? 1 : 0);

async function agreed(plan: Plan, flags: PullFlags, { output, signal }: CliContext): Promise<boolean> {
  if (flags.yes) {
    output.note(plan.text);
    return true;
  }
  if (process.stdin.isTTY && process.stderr.isTTY && !output.json) {
    output.note(plan.text);
    return confirm('Fetch it and build the index?', signal);
  }
  const { corpus, folder, rates, reckoning } = plan;
  output.result({ corpus, folder, rates, reckoning }, plan.text);
  output.note('nothing was fetched; --yes goes on');
  return false;
}

async function pull(plan: Plan, embedder: Embedder, flags: PullFlags, context: CliContext): Promise<void> {
  const { config, output, signal } = context;
  const { corpus, folder, rates, reckoning } = plan;
  const { restart, mirror, date } = flags;
  await withProgress(context, async (onProgress) => {
    const { manifest, file, built } = await pullCorpus(corpus, {
      home: homeFolder(config),
      output: folder,
      embedder,
      restart,
      mirror,
      date,
      onProgress,
      onNote: output.note,
      signal,
    });
    const count = `${counted(manifest.passages.count, 'passage')} in ${folder}`;
    const line = built ? `built: ${corpus.id}: ${count}` : `${corpus.id} is there already: ${count}`;
    const use = `use it with --set retrieval.index=${corpus.id}; the download is kept in ${file}`;
    output.result({ corpus, folder, rates, reckoning, manifest, file, built }, `${line}\n${use}`);
  });
}
