import { Command } from 'commander';
import type { StoredHead } from '../../trajectory/index.js';
import { contextOf } from '../context.js';
import { counted } from '../counted.js';
import { wholeNumber } from '../flag-values.js';
import { withStore } from '../store.js';
import { type FilterFlags, filterOf, withFilter } from './filter.js';

interface ListFlags extends FilterFlags {
  readonly limit: number;
  readonly quarantined?: boolean;
  readonly labelled?: boolean;
}

export function listCommand(): Command {
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
