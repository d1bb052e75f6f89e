import type { Tokenizer } from '../../tokenizer/index.js';
import type { WarmStartLine } from './line.js';

/** A trajectory as people read it: what the policy wrote is marked, the prompt is left out. */
export function transcriptOf(line: WarmStartLine, tokenizer: Tokenizer): string {
  const { record, dataset, kind, goldenAnswers } = line;
  const { tokenIds, origin } = record;
  const parts = [`=== ${dataset}, ${kind}: ${record.question} [${goldenAnswers.slice(0, 4).join(' | ')}]`];
  for (let start = 0; start < tokenIds.length; ) {
    let end = start + 1;
    while (end < tokenIds.length && origin[end] === origin[start]) end++;
    const text = tokenizer.decode(tokenIds.slice(start, end)).trim();
    if (origin[start] !== 'prompt') parts.push(origin[start] === 'environment' ? text : `> ${text}`);
    start = end;
  }
  return parts.join('\n');
}
