import { Command } from 'commander';
import { contextOf } from '../context.js';
import { withProgress } from '../progress-rate.js';
import { withStore } from '../store.js';
import { auditorOf } from './auditor.js';
import { type FilterFlags, filterOf, refuseUnknown, withFilter } from './filter.js';

export function auditCommand(): Command {
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
