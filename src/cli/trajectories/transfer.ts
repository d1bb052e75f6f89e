import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { Command } from 'commander';
import { NotFoundError } from '../../errors.js';
import {
  exportLine,
  exportText,
  type FeedbackEntry,
  importLine,
  type RecordFilter,
  type TrajectoryStore,
} from '../../trajectory/index.js';
import { readLines } from '../../util/lines.js';
import { contextOf } from '../context.js';
import { counted } from '../counted.js';
import { withStore } from '../store.js';
import { auditorOf } from './auditor.js';

const AT_ONCE = 100;

interface ExportFlags {
  readonly output?: string;
  readonly labelled?: boolean;
  readonly all?: boolean;
}

export function exportCommand(): Command {
  return new Command('export')
    .description('answers as JSON lines, for verl, TRL and other trainers, or for import elsewhere')
    .option('-o, --output <file>', 'absent: standard output')
    .option('--labelled', 'only those with feedback that says how good they are')
    .option('--all', 'also those that failed the audit or were not audited')
    .action(async (flags: ExportFlags, self: Command) => {
      const { config, output, signal } = contextOf(self);
      const filter: RecordFilter = {
        ...(flags.all ? {} : { auditState: 'clean' }),
        ...(flags.labelled ? { labelled: true } : {}),
      };
      let written = 0;
      const count = (): void => void (written += 1);
      await withStore(config, async (store) => {
        const lines = exportLines(store, filter, count);
        if (flags.output !== undefined) await writeLines(lines, flags.output, signal);
        else
          for await (const line of lines) {
            signal.throwIfAborted();
            process.stdout.write(line);
          }
      });
      output.note(counted(written, 'answer'));
      if (flags.output !== undefined) output.result({ exported: written, file: flags.output }, flags.output);
    });
}

async function writeLines(lines: AsyncIterable<string>, file: string, signal: AbortSignal): Promise<void> {
  try {
    await pipeline(lines, createWriteStream(file), { signal });
  } catch (error) {
    // The pipeline ends with an error of its own.
    signal.throwIfAborted();
    throw error;
  }
}

async function* exportLines(
  store: TrajectoryStore,
  filter: RecordFilter,
  onLine: () => void,
): AsyncGenerator<string, void, void> {
  let cursor = 0;
  for (;;) {
    const heads = await store.list(filter, { cursor, limit: AT_ONCE, order: 'oldest' });
    const last = heads.at(-1);
    if (last === undefined) return;
    const ids = heads.map(({ id }) => id);
    const [records, feedback] = await Promise.all([store.read(ids), store.feedbackOf(ids)]);
    for (const stored of records) {
      const own = feedback.filter(({ trajectoryId }) => trajectoryId === stored.head.id);
      yield `${exportText(exportLine(stored, own))}\n`;
      onLine();
    }
    cursor = last.sequence;
  }
}

export function importCommand(): Command {
  return new Command('import')
    .description('take in answers that export wrote; those that are there already stay as they are')
    .argument('<file>')
    .action(async (file: string, _options, self: Command) => {
      const context = contextOf(self);
      const counts = await withStore(context.config, async (store) => {
        await store.useAuditor(await auditorOf(context));
        return importFile(store, file, context.signal);
      });
      const { imported, present, feedback, orphans } = counts;
      context.output.result(
        counts,
        `${counted(imported, 'answer')}, ${present} there already, ${counted(feedback, 'piece')} of feedback${orphans > 0 ? `, ${orphans} for answers that are not here` : ''}`,
      );
    });
}

interface ImportCounts {
  imported: number;
  present: number;
  feedback: number;
  /** Feedback that prefers an answer over one that is not here. */
  orphans: number;
}

/** Answers first: feedback may name any of them. */
async function importFile(store: TrajectoryStore, file: string, signal: AbortSignal): Promise<ImportCounts> {
  const counts: ImportCounts = { imported: 0, present: 0, feedback: 0, orphans: 0 };
  const feedback: FeedbackEntry[] = [];
  for await (const { bytes, number } of readLines(file, { maxLineBytes: Number.POSITIVE_INFINITY, signal })) {
    signal.throwIfAborted();
    const line = bytes.toString('utf8');
    if (line.trim() === '') continue;
    const { record, notes, feedback: said } = importLine(line, `${file}, line ${number}`);
    const isNew = await store.put(record, { ...notes, source: 'import' });
    if (isNew) counts.imported += 1;
    else counts.present += 1;
    feedback.push(...said);
  }
  for (const entry of feedback) await importFeedback(store, entry, counts);
  return counts;
}

async function importFeedback(
  store: TrajectoryStore,
  entry: FeedbackEntry,
  counts: ImportCounts,
): Promise<void> {
  try {
    const { repeated } = await store.importFeedback(entry);
    if (!repeated) counts.feedback += 1;
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    counts.orphans += 1;
  }
}
