// The same questions for the methods that search-r1 is compared with: the answer at once, with or without passages.

import { CancelledError } from '../../errors.js';
import { openJsonLines } from '../../util/json-lines.js';
import type { OnProgress } from '../../util/progress.js';
import { aloneOn } from './alone.js';
import type { WarmStartLine } from './line.js';
import { linesSoFar } from './lines-so-far.js';
import { countUp, digestOf, summarise, type WarmStartSummary } from './make.js';
import { GiveUp } from './scripts.js';
import { type TeachingHouse, teach } from './teach.js';

export interface RivalOptions {
  readonly house: TeachingHouse;
  readonly method: 'rag' | 'direct';
  /** Trajectories of search-r1; their questions and answers are taken. */
  readonly from: readonly WarmStartLine[];
  readonly output: string;
  /** Trajectories to make; absent: one for each of `from`. */
  readonly count?: number;
  /** Passages in a prompt of rag. */
  readonly topK: number;
  readonly onProgress?: OnProgress;
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** One trajectory for each of `from`: its question as prompt, its answer as the whole turn. Resumes. */
export function makeRivals(options: RivalOptions): Promise<WarmStartSummary> {
  return aloneOn(options.output, options, () => goOn(options));
}

async function goOn(options: RivalOptions): Promise<WarmStartSummary> {
  const { house, method, output, topK, signal, onProgress, onNote } = options;
  const from = options.from.slice(0, options.count);
  const settingsDigest = digestOf(house, { topK, method });
  const sources = new Map(
    options.from.map(({ questionId, record: { question, answer }, dataset, goldenAnswers }) => [
      questionId,
      { question, answer, dataset, goldenAnswers },
    ]),
  );
  const lines = await linesSoFar({ output, settingsDigest, sources, onNote });
  const done = new Set(lines.map(({ questionId }) => questionId));
  const left: Record<string, Record<string, number>> = {};
  const writer = await openJsonLines(output);
  try {
    for (const { record, questionId, dataset, goldenAnswers } of from) {
      if (signal?.aborted) throw new CancelledError();
      if (done.has(questionId)) continue;
      const answer = record.answer as string;
      const messages = [{ role: 'user' as const, content: record.question }];
      const lesson = { id: `${method}-${questionId}`, method, messages, topK };
      try {
        const rival = await teach(house, { ...lesson, teacher: () => () => answer }, signal);
        const line = { questionId, dataset, goldenAnswers, kind: method, settingsDigest, record: rival };
        await writer.append(line);
        lines.push(line);
      } catch (error) {
        if (!(error instanceof GiveUp)) throw error;
        countUp(left, dataset, error.message);
      }
      onProgress?.({ stage: method, done: lines.length, total: from.length, unit: 'trajectories' });
    }
  } finally {
    await writer.close();
  }
  return { ...summarise(lines), left };
}
