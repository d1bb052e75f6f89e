import { Command } from 'commander';
import { NotFoundError } from '../../errors.js';
import { createTokenizer, type Tokenizer } from '../../tokenizer/index.js';
import {
  type FeedbackEntry,
  labelOf,
  type StoredTrajectory,
  type TokenOrigin,
  type TrajectoryRecord,
} from '../../trajectory/index.js';
import { contextOf } from '../context.js';
import { styled } from '../output.js';
import { withStore } from '../store.js';
import { auditorOf } from './auditor.js';

interface ShowFlags {
  readonly tokens?: boolean;
}

/** Also names the origins in a table. */
const COLOURS = {
  prompt: 'gray',
  policy: 'green',
  policyInformation: 'yellow',
  environment: 'cyan',
} as const satisfies Record<TokenOrigin, string>;

export function showCommand(): Command {
  return new Command('show')
    .description('one answer: its text coloured by origin, or every token with its numbers')
    .argument('<id>')
    .option('-t, --tokens', 'a line for each token: origin, mask, log-probability, version')
    .action(async (id: string, flags: ShowFlags, self: Command) => {
      const context = contextOf(self);
      const { config, output } = context;
      const [stored, feedback] = await withStore(config, (store) =>
        Promise.all([store.get(id), store.feedbackOf([id])]),
      );
      if (stored === null) throw new NotFoundError(`there is no stored answer "${id}"`);
      if (output.json) {
        output.result({ ...stored, feedback, label: labelOf(feedback) }, '');
        return;
      }
      const auditor = await auditorOf(context);
      const isOurs = auditor.modelDigest === stored.record.modelDigest;
      if (!isOurs)
        output.note('recorded with another model than the configured one: tokens are shown as numbers');
      const tokenizer = isOurs ? createTokenizer(auditor.tokenizer) : null;
      const body = flags.tokens
        ? tokenTable(stored.record, tokenizer)
        : colouredText(stored.record, tokenizer);
      output.result(null, [...aboutLines(stored, feedback), '', body].join('\n'));
    });
}

function aboutLines({ head, record, notes }: StoredTrajectory, feedback: readonly FeedbackEntry[]): string[] {
  const label = labelOf(feedback);
  return [
    `id        ${head.id}`,
    `time      ${new Date(head.createdAt).toISOString()}`,
    `method    ${record.method}, stop ${record.stop}${record.forced ? ', answer forced' : ''}`,
    `version   ${record.versions.map(({ adapterVersion }) => adapterVersion).join(', ')}`,
    `sampling  ${JSON.stringify(record.sampling)}, seed ${record.seed}`,
    `tokens    ${head.tokens}, ${head.sampled} sampled, ${record.lossMask.filter(Boolean).length} with loss`,
    `searches  ${record.searches.map(({ query, passageIds }) => `"${query}" (${passageIds.join(', ')})`).join('; ') || 'none'}`,
    `index     ${record.indexSnapshotId ?? 'none'}`,
    `audit     ${head.auditState}${head.auditFaults.map(({ message }) => `\n            ${message}`).join('')}`,
    `person    ${notes.userKey ?? 'not named'}, key ${notes.keyId ?? 'none'}`,
    ...(notes.originId === null ? [] : [`rollout   of the question of ${notes.originId}`]),
    ...feedback.map(feedbackLine),
    `label     ${JSON.stringify(label)}`,
    ...(head.grade === null
      ? []
      : [`reward    ${head.grade.value} (${head.grade.source}, ${head.grade.rule})`]),
  ];
}

function feedbackLine({ createdAt, keyId, role, ...said }: FeedbackEntry): string {
  const { reward, rating, goldAnswers, preferredOver, comment } = said;
  const parts = Object.entries({ reward, rating, goldAnswers, preferredOver, comment })
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return `feedback  ${new Date(createdAt).toISOString()} by ${keyId} (${role}): ${parts.join(', ')}`;
}

/** Stretches of one origin, decoded together. @param tokenizer  null: it is not known, and numbers stand for tokens */
export function colouredText(record: TrajectoryRecord, tokenizer: Tokenizer | null): string {
  const parts: string[] = [];
  for (let start = 0; start < record.tokenIds.length; ) {
    const origin = record.origin[start] as TokenOrigin;
    let end = start + 1;
    while (end < record.tokenIds.length && record.origin[end] === origin) end++;
    const ids = record.tokenIds.slice(start, end);
    const text = printable(tokenizer === null ? ids.join(' ') : tokenizer.decode(ids));
    parts.push(process.stdout.isTTY ? styled(COLOURS[origin], text) : `[${origin}] ${text}`);
    start = end;
  }
  return parts.join('\n');
}

/** A line for each token, after a header; numbers and version of those that were sampled. */
export function tokenTable(record: TrajectoryRecord, tokenizer: Tokenizer | null): string {
  const versionAt = (at: number): string =>
    record.versions.find(({ start, end }) => at >= start && at < end)?.adapterVersion.slice(0, 12) ?? '-';
  const rows = record.tokenIds.map((id, at) => {
    const origin = record.origin[at] as TokenOrigin;
    const isSampled = origin === 'policy' || origin === 'policyInformation';
    const number = (value: number | undefined): string =>
      (isSampled && value !== undefined ? value.toFixed(4) : '').padStart(9);
    const text = tokenizer === null ? '' : JSON.stringify(Buffer.from(tokenizer.tokenBytes(id)).toString());
    return [
      String(at).padStart(5),
      String(id).padStart(7),
      origin.padEnd(17),
      String(record.lossMask[at]),
      number(record.logprobs[at]),
      number(record.samplingLogprobs[at]),
      (isSampled ? versionAt(at) : '').padEnd(12),
      styled(COLOURS[origin] ?? 'red', text),
    ].join(' ');
  });
  const header = '   at      id origin            m   logprob  sampling version      text';
  return [header, ...rows].join('\n');
}

/** What was stored must not steer the terminal. */
const printable = (text: string): string =>
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');
