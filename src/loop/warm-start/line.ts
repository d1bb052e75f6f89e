import { z } from 'zod';
import { type TrajectoryRecord, trajectoryRecordSchema } from '../../trajectory/index.js';
import { parsedJsonLines } from '../../util/json-lines.js';

const ALIGNED = ['origin', 'lossMask', 'logprobs', 'samplingLogprobs'] as const;

const alignedRecord = trajectoryRecordSchema.superRefine((record, context) => {
  const { length } = record.tokenIds;
  for (const name of ALIGNED)
    if (record[name].length !== length)
      context.addIssue({
        code: 'custom',
        path: [name],
        message: `expected ${length} entries, as many as tokenIds, got ${record[name].length}`,
      });
});

const lineSchema = z.object({
  questionId: z.string(),
  dataset: z.string(),
  goldenAnswers: z.array(z.string()),
  /** Which script wrote it; `rag` and `direct` for the rivals. */
  kind: z.string(),
  /** Digest of everything that shaped it but the question. */
  settingsDigest: z.string(),
  record: alignedRecord,
});

/** One trajectory to learn from, with the question it belongs to. */
export type WarmStartLine = Omit<z.infer<typeof lineSchema>, 'record' | 'goldenAnswers'> & {
  readonly goldenAnswers: readonly string[];
  readonly record: TrajectoryRecord;
};

/**
 * Trajectories of a warm-start file, in its order.
 * @throws {FileFormatError} naming file, line and field
 */
export async function readWarmStart(path: string): Promise<WarmStartLine[]> {
  const lines: WarmStartLine[] = [];
  for await (const line of parsedJsonLines(path, lineSchema)) lines.push(line);
  return lines;
}
