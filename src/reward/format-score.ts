// How well a rollout keeps to the tags: the score of SSRL's listing 1 (arXiv 2508.10874). One thing is ours:
// tags are looked for in what the policy wrote and in the marks of our own observations, never inside a passage,
// so that neither angle brackets in a web page nor a forged tag change the score.

import type { Tokenizer } from '../tokenizer/index.js';
import {
  leadingSpaceLength,
  type ObservationRecord,
  PROTOCOL_TAGS,
  sampledText,
  type TokenOrigin,
  type TrajectoryRecord,
  trimSpace,
} from '../trajectory/index.js';

/** A stretch of a rollout: text of the policy, what a search gave back, or anything else we said. */
export type FormatPart =
  | { readonly kind: 'sampled'; readonly text: string }
  | { readonly kind: 'information' }
  | { readonly kind: 'other' };

export interface FormatScore {
  /** In [0, 1]. */
  readonly score: number;
  /** score > 0 */
  readonly wellFormed: boolean;
}

const ILL_FORMED: FormatScore = { score: 0, wellFormed: false };

const MOST_THINKS = 8;
const FEWEST_TAGS = 4;
/** Thinks that a full score takes. */
const FULL_THINKS = 2;

const BLOCKS = ['think', 'search', 'information', 'answer'] as const;
type Block = (typeof BLOCKS)[number];

/** Words of a template that was copied instead of filled in. */
const PLACEHOLDERS: Readonly<Record<Block, string>> = {
  think: 'your thoughts',
  search: 'your query',
  information: 'your information',
  answer: 'your answer',
};

/** Stands for the passages of an observation. */
const PASSAGES = '<information>passages</information>';

/**
 * Format score of a rollout. 0 unless it begins with think and ends with answer, knows only the eight tags, has
 * content in every block, an information after each search and at most eight thinks; else
 *
 *   s = min(1, thinks / 2) * ratio,   ratio = 1 if thinks = searches + 1,
 *   else min(thinks, searches + 1) / max(thinks, searches + 1)
 */
export function formatScore(parts: readonly FormatPart[]): FormatScore {
  const text = trimSpace(parts.map(textOf).join(''));
  if (!text.startsWith('<think>') || !text.endsWith('</answer>')) return ILL_FORMED;
  const tags = text.match(/<[^>]*>/g) ?? [];
  if (!tagsInOrder(tags) || !BLOCKS.every((block) => contentFits(text, block))) return ILL_FORMED;
  const count = (tag: string): number => tags.filter((item) => item === tag).length;
  const thinks = count('<think>');
  const searches = count('<search>');
  if (searches !== count('<information>') || thinks > MOST_THINKS) return ILL_FORMED;
  const turns = searches + 1;
  const score = Math.min(1, thinks / FULL_THINKS) * (Math.min(thinks, turns) / Math.max(thinks, turns));
  return { score, wellFormed: score > 0 };
}

function textOf(part: FormatPart): string {
  if (part.kind === 'sampled') return part.text;
  return part.kind === 'information' ? PASSAGES : ' ';
}

function tagsInOrder(tags: readonly string[]): boolean {
  if (tags.length < FEWEST_TAGS) return false;
  if (!tags.every((tag) => (PROTOCOL_TAGS as readonly string[]).includes(tag))) return false;
  if (tags[1] !== '</think>' || tags.at(-2) !== '<answer>') return false;
  return tags.every((tag, i) => tag !== '</search>' || tags[i + 1] === '<information>');
}

function contentFits(text: string, block: Block): boolean {
  return contentsOf(text, block).every((content) => {
    if (leadingSpaceLength(content) === content.length) return false;
    if (block === 'search' && content.includes('\n')) return false;
    return !content.toLowerCase().includes(PLACEHOLDERS[block]);
  });
}

/** From each opening tag to the first closing one after it; an opening between the two is content. */
function contentsOf(text: string, block: Block): string[] {
  const [open, close] = [`<${block}>`, `</${block}>`];
  const contents: string[] = [];
  for (let at = 0; ; ) {
    const begin = text.indexOf(open, at);
    const end = begin < 0 ? -1 : text.indexOf(close, begin + open.length);
    if (end < 0) return contents;
    contents.push(text.slice(begin + open.length, end));
    at = end + close.length;
  }
}

/** The parts of a record. Text that a turn's last token carries beyond its closing tag is left out. */
export function formatParts(record: TrajectoryRecord, tokenizer: Tokenizer): FormatPart[] {
  const observations = new Map(record.observations.map((item) => [item.range[0], item]));
  const parts: FormatPart[] = [];
  const starts = new Set(record.turnStarts);
  for (let at = 0; at < record.tokenIds.length; ) {
    const observation = observations.get(at);
    if (observation !== undefined) {
      parts.push({ kind: isReply(observation) ? 'information' : 'other' });
      at = observation.range[1];
    } else if (starts.has(at)) {
      const end = turnEnd(record, at, starts);
      parts.push({ kind: 'sampled', text: turnText(record.tokenIds.slice(at, end), tokenizer) });
      at = end;
    } else at++;
  }
  return parts;
}

const isReply = ({ kind }: ObservationRecord): boolean => kind === 'search' || kind === 'failure';

const isSampled = (origin: TokenOrigin | undefined): boolean =>
  origin === 'policy' || origin === 'policyInformation';

function turnEnd(record: TrajectoryRecord, start: number, starts: ReadonlySet<number>): number {
  let end = start + 1;
  while (isSampled(record.origin[end]) && !starts.has(end)) end++;
  return end;
}

function turnText(ids: readonly number[], tokenizer: Tokenizer): string {
  const text = sampledText(ids, tokenizer);
  const ends = ['</search>', '</answer>'].flatMap((tag) => {
    const at = text.lastIndexOf(tag);
    return at < 0 ? [] : [at + tag.length];
  });
  // Behind the tag of most turns there is nothing: how long the text was before its last token need not be known.
  if (ends.length === 0 || ends[0] === text.length) return text;
  const beforeLast = sampledText(ids.slice(0, -1), tokenizer);
  for (const end of ends) if (end > beforeLast.length) return text.slice(0, end);
  return text;
}
