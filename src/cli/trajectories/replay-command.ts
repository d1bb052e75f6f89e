import { Command } from 'commander';
import { dataFolder } from '../../config/index.js';
import type { Engine } from '../../engine/index.js';
import { IntegrityError, NotFoundError } from '../../errors.js';
import { type FoundVersion, findVersion, loopFolder } from '../../loop/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';
import { openIndex, openPolicyModel } from '../application.js';
import { type CliContext, contextOf } from '../context.js';
import { counted } from '../counted.js';
import { withStore } from '../store.js';
import { BASE, type ReplayReport, replayRecord, versionOf } from './replay.js';

interface Replay extends ReplayReport {
  readonly policy: { readonly version: string; readonly from: 'base' | 'configured' | FoundVersion['kind'] };
}

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

async function replay(record: TrajectoryRecord, { config, output, signal }: CliContext): Promise<Replay> {
  const progress = output.progress();
  const start = { onProgress: progress.on, onNote: output.note, signal };
  const policy = await openPolicyModel(config, start).finally(() => progress.stop());
  try {
    const { modelDigest } = policy.engine.info;
    if (record.modelDigest !== modelDigest)
      throw new IntegrityError(
        `recorded with model ${record.modelDigest}, the configured one is ${modelDigest}: model.policy or engine.precision differ`,
      );
    const version = versionOf(record);
    const from = await loadVersion(version, policy.engine, loopFolder(dataFolder(config)));
    const retriever = record.searches.length > 0 ? await openIndex(config, start) : null;
    progress.stop();
    try {
      const report = await replayRecord(record, policy.engine, retriever, signal);
      return { ...report, policy: { version, from } };
    } finally {
      await retriever?.close();
    }
  } finally {
    progress.stop();
    await policy.close();
  }
}

/**
 * Versions that the loop made are not among the configured ones.
 * @throws {NotFoundError} the version is nowhere any more; {IntegrityError} its files hold another one
 */
async function loadVersion(
  version: string,
  engine: Engine,
  folder: string,
): Promise<Replay['policy']['from']> {
  if (version === BASE) return 'base';
  if (engine.listAdapters().some((adapter) => adapter.version === version)) return 'configured';
  const found = await findVersion(folder, version);
  if (found === null)
    throw new NotFoundError(
      `version ${version} is gone: it is not configured, and neither among the published versions nor among the checkpoints in ${folder}`,
    );
  const loaded = await engine.loadAdapter(version, found.folder);
  if (loaded.version !== version)
    throw new IntegrityError(
      `${found.folder} holds version ${loaded.version}, expected ${version}: it was changed`,
    );
  return found.kind;
}

const FROM = {
  base: 'the base model',
  configured: 'configured',
  published: 'published by the loop',
  checkpoint: 'a checkpoint of the loop',
} as const;

function textOf(report: Replay, isSame: boolean): string {
  const { scored, tokens, meanDifference, largestDifference, largestAt, changedTokens, policy } = report;
  return [
    `version ${policy.version} (${FROM[policy.from]})`,
    `sampled ${scored} of ${counted(tokens, 'token')}; scored again:`,
    `log-probabilities differ by ${meanDifference.toFixed(5)} on average, at most ${largestDifference.toFixed(5)} (token ${largestAt ?? '-'})`,
    changedTokens === null
      ? 'not greedy: there is no one text to come out again'
      : `greedy: ${changedTokens === 0 ? 'every token is the likeliest again' : `not the likeliest now: ${counted(changedTokens, 'token')}`}`,
    searchText(report),
    isSame ? 'the record holds' : 'THE RECORD DOES NOT COME OUT THE SAME',
  ].join('\n');
}

function searchText({ index, changedSearches }: ReplayReport): string {
  if (index === null) return 'nothing was searched';
  return changedSearches === null
    ? `searches were not repeated: the index was ${index.recorded ?? 'not named'} then, and is ${index.present} now`
    : `searches that gave other passages: ${changedSearches}`;
}
