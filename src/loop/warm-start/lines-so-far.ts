// What an earlier run left in a file of trajectories, and what of it still fits the questions of now.

import { IntegrityError } from '../../errors.js';
import { canonicalJson } from '../../util/digest.js';
import { writeJsonLines } from '../../util/json-lines.js';
import { readWarmStart, type WarmStartLine } from './line.js';

/** What a line was made from. */
export interface LineSource {
  readonly question: string;
  readonly dataset: string;
  readonly goldenAnswers: readonly string[];
  /** Where the line's answer is given and not found. */
  readonly answer?: string | null;
}

export interface LinesSoFarOptions {
  readonly output: string;
  readonly settingsDigest: string;
  /** All questions of now, by id. */
  readonly sources: ReadonlyMap<string, LineSource>;
  readonly onNote?: ((line: string) => void) | undefined;
}

/**
 * Lines that stand. Those whose question or gold answers have changed are taken out of the file, to be made again.
 * @throws {IntegrityError} lines of other settings, or of questions that are not there any more
 */
export async function linesSoFar(options: LinesSoFarOptions): Promise<WarmStartLine[]> {
  const { output, settingsDigest, sources, onNote } = options;
  const lines = await readWarmStart(output).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const other = lines.find((line) => line.settingsDigest !== settingsDigest);
  if (other !== undefined)
    throw new IntegrityError(
      `${output} was begun with other settings: its digest is ${other.settingsDigest}, that of this run ${settingsDigest}; name another file`,
    );
  const gone = lines.filter(({ questionId }) => !sources.has(questionId));
  if (gone.length > 0)
    throw new IntegrityError(
      `${output} holds trajectories of questions that are not among those given: ${gone.length}, the first one ${gone[0]?.questionId}; name another file, or take them out`,
    );
  const kept = lines.filter((line) => madeFrom(line, sources.get(line.questionId) as LineSource));
  if (kept.length === lines.length) return lines;
  onNote?.(
    `${output}: made again, since question or gold answers have changed: ${lines.length - kept.length}`,
  );
  await writeJsonLines(output, kept);
  return kept;
}

function madeFrom(line: WarmStartLine, { question, dataset, goldenAnswers, answer }: LineSource): boolean {
  const { record } = line;
  if (answer !== undefined && record.answer?.trim() !== answer?.trim()) return false;
  const made = [record.question, line.dataset, line.goldenAnswers];
  return canonicalJson(made) === canonicalJson([question, dataset, goldenAnswers]);
}
