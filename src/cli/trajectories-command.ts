import { Command, InvalidArgumentError } from 'commander';
import { InvalidInputError, NotFoundError, SearchloopError } from '../errors.js';
import type { DeletionReport, RecordFilter, StoredHead } from '../trajectory/index.js';
import { confirm } from './confirm.js';
import { type CliContext, contextOf } from './context.js';
import { counted } from './counted.js';
import { wholeNumber } from './numbers.js';
import { withProgress } from './progress-rate.js';
import { withStore } from './store.js';
import { auditorOf } from './trajectories/auditor.js';
import { replayCommand } from './trajectories/replay-command.js';
import { showCommand } from './trajectories/show.js';
import { exportCommand, importCommand } from './trajectories/transfer.js';

interface FilterFlags {
  readonly user?: string;
  readonly key?: string;
  readonly before?: number;
  readonly after?: number;
}

/** `trajectories list | show | export | import | delete | audit | replay`. */
export function trajectoriesCommand(): Command {
  return new Command('trajectories')
    .description('stored answers: every token with its origin, log-probability and policy version')
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(exportCommand())
    .addCommand(importCommand())
    .addCommand(deleteCommand())
    .addCommand(auditCommand())
    .addCommand(replayCommand());
}

function withFilter(command: Command): Command {
  return command
    .option('--user <name>', 'of this person (user or safety_identifier of the request)')
    .option('--key <id>', 'asked with this API key')
    .option('--before <time>', 'made before (ISO 8601)', timeOf)
    .option('--after <time>', 'made after (ISO 8601)', timeOf);
}

function filterOf(flags: FilterFlags, ids: readonly string[] = []): RecordFilter {
  return {
    ...(ids.length > 0 ? { ids } : {}),
    ...(flags.user === undefined ? {} : { userKey: flags.user }),
    ...(flags.key === undefined ? {} : { keyId: flags.key }),
    ...(flags.before === undefined ? {} : { createdBefore: flags.before }),
    ...(flags.after === undefined ? {} : { createdAfter: flags.after }),
  };
}

interface ListFlags extends FilterFlags {
  readonly limit: number;
  readonly quarantined?: boolean;
  readonly labelled?: boolean;
}

function listCommand(): Command {
  return withFilter(new Command('list'))
    .description('stored answers, the newest first')
    .option('-n, --limit <number>', 'so many', wholeNumber(1), 20)
    .option('--quarantined', 'only those that failed the audit')
    .option('--labelled', 'only those with feedback that says how good they are')
    .action(async (flags: ListFlags, self: Command) => {
      const { config, output } = contextOf(self);
      const filter = {
        ...filterOf(flags),
        ...(flags.quarantined ? { auditState: 'quarantined' as const } : {}),
        ...(flags.labelled ? { labelled: true } : {}),
      };
      const [heads, counts] = await withStore(config, (store) =>
        Promise.all([store.list(filter, { limit: flags.limit, order: 'newest' }), store.counts()]),
      );
      const { trajectories, feedback, quarantined, sizeBytes } = counts;
      const total = `${counted(trajectories, 'answer')}, ${counted(feedback, 'piece')} of feedback, ${quarantined} quarantined, ${(sizeBytes / 1e6).toFixed(1)} MB`;
      output.result({ trajectories: heads, counts }, [...heads.map(line), total].join('\n'));
    });
}

function line(head: StoredHead): string {
  const { id, createdAt, method, adapterVersion, sampled, auditState, auditFaults, grade } = head;
  const marks = [
    auditState === 'quarantined' ? `quarantined: ${auditFaults[0]?.message ?? ''}` : null,
    auditState === 'unchecked' ? 'not audited' : null,
    grade === null ? null : `reward ${grade.value.toFixed(2)} (${grade.source})`,
  ].filter((mark) => mark !== null);
  const about = [method, adapterVersion.slice(0, 12), counted(sampled, 'token'), ...marks].join(', ');
  const clip = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 70);
  return `${id}  ${new Date(createdAt).toISOString()}  ${about}\n  ${clip(head.question)} -> ${clip(head.answer ?? '(none)')}`;
}

interface DeleteFlags extends FilterFlags {
  readonly feedbackOnly?: boolean;
  readonly yes?: boolean;
}

function deleteCommand(): Command {
  return withFilter(new Command('delete'))
    .description(
      'remove answers with rollouts of their questions and feedback; names the adapters they reached',
    )
    .argument('[id...]', 'ids of answers')
    .option('--feedback-only', 'with --key: what this key said, and no answer')
    .option('-y, --yes', 'do not ask')
    .action(async (ids: string[], flags: DeleteFlags, self: Command) => {
      if (flags.feedbackOnly) {
        await deleteFeedback(ids, flags, contextOf(self));
        return;
      }
      const { config, output, signal } = contextOf(self);
      const filter = filterOf(flags, ids);
      if (Object.keys(filter).length === 0)
        throw new InvalidInputError('expected ids, --user, --key, --before or --after: what to delete');
      await withStore(config, async (store) => {
        const found = await store.list(filter, { limit: 1_000_000, order: 'oldest' });
        const question = `Delete ${counted(found.length, 'answer')}${alsoReached(flags, ids)}?`;
        const reaches = found.length > 0 || isWholeKey(flags, ids);
        if (reaches && !flags.yes && !(await confirm(question, signal)))
          throw new SearchloopError('not_confirmed', 'nothing was deleted; --yes deletes without asking');
        if (found.length > 0 || ids.length === 0) {
          const report = await store.delete(filter);
          output.result(report, reportText(report));
        }
        refuseUnknown(ids, found);
      });
    });
}

/** For a key that labels no more: what it taught by its words goes, and nobody's answers. */
async function deleteFeedback(
  ids: readonly string[],
  flags: DeleteFlags,
  { config, output, signal }: CliContext,
): Promise<void> {
  if (flags.key === undefined || flags.user !== undefined || ids.length > 0)
    throw new InvalidInputError('--feedback-only: expected --key, and no ids or --user beside it');
  const { key: keyId, before, after } = flags;
  if (!flags.yes && !(await confirm(`Delete all feedback by the key ${keyId}?`, signal)))
    throw new SearchloopError('not_confirmed', 'nothing was deleted; --yes deletes without asking');
  const report = await withStore(config, (store) =>
    store.deleteFeedback({
      keyId,
      ...(before === undefined ? {} : { createdBefore: before }),
      ...(after === undefined ? {} : { createdAfter: after }),
    }),
  );
  output.result(report, `deleted ${counted(report.feedback, 'piece')} of feedback`);
}

/** Only then feedback that the key gave on others' answers goes too. */
const isWholeKey = ({ key, user }: DeleteFlags, ids: readonly string[]): boolean =>
  key !== undefined && user === undefined && ids.length === 0;

const alsoReached = (flags: DeleteFlags, ids: readonly string[]): string =>
  isWholeKey(flags, ids)
    ? ', rollouts of their questions and all feedback by this key'
    : ' and rollouts of their questions';

/** @throws {NotFoundError} naming the ids that were not found */
function refuseUnknown(ids: readonly string[], found: readonly Pick<StoredHead, 'id'>[]): void {
  const known = new Set(found.map(({ id }) => id));
  const unknown = ids.filter((id) => !known.has(id)).map((id) => `"${id}"`);
  if (unknown.length > 0) throw new NotFoundError(`there is no such stored answer: ${unknown.join(', ')}`);
}

function reportText({ trajectories, feedback, adapters, leftovers }: DeletionReport): string {
  const reached = adapters.map(({ digest, records }) =>
    records > 0
      ? `  ${digest}: trained on ${records} of them`
      : `  ${digest}: descends from one that was trained on them`,
  );
  return [
    `deleted ${counted(trajectories.length, 'answer')}, ${counted(feedback, 'piece')} of feedback`,
    ...(reached.length === 0
      ? ['no adapter was trained on them']
      : ['adapters that were trained on them (these stay: remove or retrain them):', ...reached]),
    ...(leftovers === null
      ? []
      : [
          `bytes of them may still lie in the log of the database, which a server clears within the hour: ${leftovers}`,
        ]),
  ].join('\n');
}

function auditCommand(): Command {
  return withFilter(new Command('audit'))
    .description('check stored answers against the invariants again; exit code 1 when some are quarantined')
    .argument('[id...]', 'ids of answers; all when absent')
    .action(async (ids: string[], flags: FilterFlags, self: Command) => {
      const context = contextOf(self);
      const summary = await withStore(context.config, async (store) => {
        if (ids.length > 0)
          refuseUnknown(ids, await store.list({ ids }, { limit: ids.length, order: 'oldest' }));
        await store.useAuditor(await auditorOf(context));
        return withProgress(context, (onProgress) =>
          store.audit(filterOf(flags, ids), {
            signal: context.signal,
            onProgress: (done) => onProgress({ stage: 'audit', done, total: null, unit: 'answers' }),
          }),
        );
      });
      const { checked, clean, quarantined, skipped } = summary;
      context.output.result(
        summary,
        [
          `${checked} checked: ${clean} clean, ${quarantined.length} quarantined, ${skipped} of other models`,
          ...quarantined.map((id) => `  ${id}`),
        ].join('\n'),
      );
      if (quarantined.length > 0) process.exitCode = 1;
    });
}

function timeOf(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new InvalidArgumentError('expected a time such as 2026-01-31T12:00:00Z');
  return time;
}
