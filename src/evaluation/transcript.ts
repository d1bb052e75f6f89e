// A rollout as people read it, kept beside the results.

import { join } from 'node:path';
import { z } from 'zod';
import { FileFormatError, NotFoundError } from '../errors.js';
import type { Tokenizer } from '../tokenizer/index.js';
import type { TrajectoryRecord } from '../trajectory/index.js';
import { readJsonLines } from '../util/json-lines.js';

const transcript = z.object({
  id: z.string(),
  dataset: z.string(),
  question: z.string(),
  goldenAnswers: z.array(z.string()),
  answer: z.string().nullable(),
  em: z.number(),
  /** In order; what the environment wrote is no work of the policy. */
  parts: z.array(z.object({ from: z.enum(['prompt', 'policy', 'environment']), text: z.string() })),
});

export type Transcript = z.infer<typeof transcript>;
export type TranscriptPart = Transcript['parts'][number];

export const TRANSCRIPTS = 'transcripts.jsonl';

/** Runs of tokens of one origin, decoded. */
export function partsOf(record: TrajectoryRecord, tokenizer: Tokenizer): TranscriptPart[] {
  const { tokenIds, origin } = record;
  const from = (t: number): TranscriptPart['from'] => {
    const one = origin[t];
    return one === 'prompt' || one === 'environment' ? one : 'policy';
  };
  const parts: TranscriptPart[] = [];
  for (let start = 0; start < tokenIds.length; ) {
    let end = start + 1;
    while (end < tokenIds.length && from(end) === from(start)) end++;
    parts.push({ from: from(start), text: tokenizer.decode(tokenIds.slice(start, end)) });
    start = end;
  }
  return parts;
}

/** What the policy wrote is marked with `>`; the prompt is left out. */
export function readableParts(parts: readonly TranscriptPart[]): string {
  return parts
    .filter(({ from }) => from !== 'prompt')
    .map(({ from, text }) => (from === 'policy' ? `> ${text.trim().replaceAll('\n', '\n> ')}` : text.trim()))
    .join('\n');
}

/**
 * Transcripts of an evaluation's folder; of a question that was asked again, the last one.
 * @throws {NotFoundError} there are none
 * @throws {FileFormatError} naming the line
 */
export async function readTranscripts(folder: string): Promise<Transcript[]> {
  const path = join(folder, TRANSCRIPTS);
  const transcripts = new Map<string, Transcript>();
  try {
    for await (const { value, line } of readJsonLines(path)) {
      const parsed = transcript.safeParse(value);
      if (!parsed.success)
        throw new FileFormatError(`${path}, line ${line}: ${z.prettifyError(parsed.error)}`);
      transcripts.set(parsed.data.id, parsed.data);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new NotFoundError(`no transcripts of an evaluation in ${folder}`, { cause: error });
    throw error;
  }
  return [...transcripts.values()];
}

/** Markdown of some transcripts, right and wrong ones in turn while both last. */
export function markdownTranscripts(transcripts: readonly Transcript[], count: number): string {
  const right = transcripts.filter(({ em }) => em === 1);
  const wrong = transcripts.filter(({ em }) => em !== 1);
  const turns = Array.from({ length: Math.max(right.length, wrong.length) }, (_, i) => [right[i], wrong[i]]);
  return turns
    .flat()
    .filter((item): item is Transcript => item !== undefined)
    .slice(0, count)
    .map(
      ({ question, dataset, goldenAnswers, answer, em, parts }) =>
        `### ${question}\n\n${dataset}; gold: ${goldenAnswers.slice(0, 5).join(' | ')}; answer: ${answer ?? 'none'}; ${em === 1 ? 'right' : 'wrong'}\n\n\`\`\`text\n${readableParts(parts)}\n\`\`\`\n`,
    )
    .join('\n');
}
