import { Command } from 'commander';
import { InvalidInputError, SearchloopError } from '../../errors.js';
import { forgetDeleted } from '../../loop/index.js';
import type { DeletionReport } from '../../trajectory/index.js';
import { confirm } from '../confirm.js';
import { type CliContext, contextOf } from '../context.js';
import { counted } from '../counted.js';
import { withStore } from '../store.js';
import { type FilterFlags, filterOf, refuseUnknown, withFilter } from './filter.js';

interface DeleteFlags extends FilterFlags {
  readonly feedbackOnly?: boolean;
  readonly yes?: boolean;
}

export function deleteCommand(): Command {
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
          await forgetDeleted(store, config.loop);
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
  await withStore(config, async (store) => {
    const report = await store.deleteFeedback({
      keyId,
      ...(before === undefined ? {} : { createdBefore: before }),
      ...(after === undefined ? {} : { createdAfter: after }),
    });
    output.result(report, `deleted ${counted(report.feedback, 'piece')} of feedback`);
    await forgetDeleted(store, config.loop);
  });
}

/** Only then feedback that the key gave on others' answers goes too. */
const isWholeKey = ({ key, user }: DeleteFlags, ids: readonly string[]): boolean =>
  key !== undefined && user === undefined && ids.length === 0;

const alsoReached = (flags: DeleteFlags, ids: readonly string[]): string =>
  isWholeKey(flags, ids)
    ? ', rollouts of their questions and all feedback by this key'
    : ' and rollouts of their questions';

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
