import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { dataFolder } from '../../config/index.js';
import type { Engine } from '../../engine/index.js';
import { IntegrityError, NotFoundError } from '../../errors.js';
import { loopFolder, versionsOf } from '../../loop/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';
import { openIndex, openPolicyModel } from '../application.js';
import { type CliContext, contextOf } from '../context.js';
import { counted } from '../counted.js';
import { withStore } from '../store.js';
import { type ReplayReport, replayRecord } from './replay.js';

/** Below this the policy is the same: prompts and answers are read in pieces of other sizes than then. */
const MEAN_TOLERANCE = 0.01;
const TOLERANCE = 0.25;

export function replayCommand(): Command {
  return new Command('replay')
    .description(
      'score an answer again under its version and index; exit code 1 when it does not come out the same',
    )
    .argument('<id>')
    .option('--tolerance <nats>', 'largest difference of a log-probability', Number, TOLERANCE)
    .action(async (id: string, flags: { readonly tolerance: number }, self: Command) => {
      const context = contextOf(self);
      const stored = await withStore(context.config, (store) => store.get(id));
      if (stored === null) throw new NotFoundError(`there is no stored answer "${id}"`);
      const report = await replay(stored.record, context);
      const isSame = report.meanDifference <= MEAN_TOLERANCE && report.largestDifference <= flags.tolerance;
      context.output.result({ ...report, isSame }, textOf(report, isSame));
      if (!isSame || (report.changedSearches ?? 0) > 0) process.exitCode = 1;
    });
}

async function replay(
  record: TrajectoryRecord,
  { config, output, signal }: CliContext,
): Promise<ReplayReport> {
  const progress = output.progress();
  const start = { onProgress: progress.on, onNote: output.note, signal };
  const policy = await openPolicyModel(config, start).finally(() => progress.stop());
  try {
    const { modelDigest } = policy.engine.info;
    if (record.modelDigest !== modelDigest)
      throw new IntegrityError(
        `recorded with model ${record.modelDigest}, the configured one is ${modelDigest}: model.policy or engine.precision differ`,
      );
    await loadPublished(record, policy.engine, versionsOf(loopFolder(dataFolder(config))));
    const retriever = record.searches.length > 0 ? await openIndex(config, start) : null;
    progress.stop();
    try {
      return await replayRecord(record, policy.engine, retriever, signal);
    } finally {
      await retriever?.close();
    }
  } finally {
    progress.stop();
    await policy.close();
  }
}

/** Versions that the loop published are not among the configured ones. */
async function loadPublished({ versions }: TrajectoryRecord, engine: Engine, folder: string): Promise<void> {
  const known = new Set(engine.listAdapters().map(({ version }) => version));
  for (const version of new Set(versions.map(({ adapterVersion }) => adapterVersion))) {
    const published = join(folder, version);
    if (!known.has(version) && existsSync(published)) await engine.loadAdapter(version, published);
  }
}

function textOf(report: ReplayReport, isSame: boolean): string {
  const { scored, tokens, meanDifference, largestDifference, largestAt, changedTokens, changedSearches } =
    report;
  return [
    `sampled ${scored} of ${counted(tokens, 'token')}; scored again:`,
    `log-probabilities differ by ${meanDifference.toFixed(5)} on average, at most ${largestDifference.toFixed(5)} (token ${largestAt ?? '-'})`,
    changedTokens === null
      ? 'not greedy: there is no one text to come out again'
      : `greedy: ${changedTokens === 0 ? 'every token is the likeliest again' : `not the likeliest now: ${counted(changedTokens, 'token')}`}`,
    changedSearches === null
      ? 'searches were not repeated: none, or the index has changed since'
      : `searches that gave other passages: ${changedSearches}`,
    isSame ? 'the record holds' : 'THE RECORD DOES NOT COME OUT THE SAME',
  ].join('\n');
}
