import { z } from 'zod';
import { FileFormatError } from '../../errors.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';
import { readJsonLines } from '../../util/json-lines.js';

/** One trajectory to learn from, with the question it belongs to. */
export interface WarmStartLine {
  readonly questionId: string;
  readonly dataset: string;
  readonly goldenAnswers: readonly string[];
  /** Which script wrote it; `rag` and `direct` for the rivals. */
  readonly kind: string;
  /** Digest of everything that shaped it but the question. */
  readonly settingsDigest: string;
  readonly record: TrajectoryRecord;
}

const lineShape = z.looseObject({
  questionId: z.string(),
  dataset: z.string(),
  goldenAnswers: z.array(z.string()),
  kind: z.string(),
  settingsDigest: z.string(),
  record: z.looseObject({ tokenIds: z.array(z.number()), lossMask: z.array(z.number()) }),
});

/**
 * Trajectories of a warm-start file, in its order.
 * @throws {FileFormatError} naming file, line and field
 */
export async function readWarmStart(path: string): Promise<WarmStartLine[]> {
  const lines: WarmStartLine[] = [];
  for await (const { value, line } of readJsonLines(path)) {
    const parsed = lineShape.safeParse(value);
    if (!parsed.success) throw new FileFormatError(`${path}, line ${line}: ${z.prettifyError(parsed.error)}`);
    lines.push(parsed.data as unknown as WarmStartLine);
  }
  return lines;
}
