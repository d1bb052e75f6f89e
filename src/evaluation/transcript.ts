// A rollout as people read it, kept beside the results.

import { z } from 'zod';
import type { Tokenizer } from '../tokenizer/index.js';
import type { TrajectoryRecord, TrajectoryStop } from '../trajectory/index.js';
import { answerKey } from './result.js';
import { sampleOrder } from './sample-order.js';

export const transcript = z.object({
  id: z.string(),
  sample: z.int().min(0).optional(),
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
 * Right and wrong ones in turn while both last: half of each where there are enough. Which ones follows from their ids
 * alone.
 */
export function chosenTranscripts<Item extends Transcript>(
  transcripts: readonly Item[],
  count: number,
): Item[] {
  const keyed = transcripts.map((item) => ({ id: answerKey(item), item }));
  const order = sampleOrder(keyed).map(({ item }) => item);
  const right = order.filter(({ em }) => em === 1);
  const wrong = order.filter(({ em }) => em !== 1);
  const turns = Array.from({ length: Math.max(right.length, wrong.length) }, (_, i) => [right[i], wrong[i]]);
  return turns
    .flat()
    .filter((item) => item !== undefined)
    .slice(0, count);
}

/** A transcript, and how its rollout stopped where the folder's results tell it. */
export type StoredTranscript = Transcript & { readonly stop: TrajectoryStop | null };

/** Transcripts as Markdown: question, gold answers, answer, and the whole text of what came after the prompt. */
export const markdownTranscripts = (transcripts: readonly StoredTranscript[]): string =>
  transcripts
    .map(({ id, sample, question, dataset, goldenAnswers, answer, em, stop, parts }) => {
      const text = readableParts(parts);
      const which = sample === undefined ? id : `${id}, sample ${sample}`;
      const fence = fenceFor(text);
      return [
        `### ${question}`,
        '',
        `${dataset}, ${which}; gold: ${goldText(goldenAnswers)}; answer: ${answer ?? 'none'}; stop: ${stop ?? 'unknown'}; ${em === 1 ? 'right' : 'wrong'}`,
        '',
        `${fence}text`,
        text,
        fence,
        '',
      ].join('\n');
    })
    .join('\n');

const SHOWN_ANSWERS = 5;

function goldText(answers: readonly string[]): string {
  const more = answers.length - SHOWN_ANSWERS;
  return `${answers.slice(0, SHOWN_ANSWERS).join(' | ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Longer than any run of backticks in the text. */
const fenceFor = (text: string): string =>
  '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
