import { partsOf, readableParts } from '../../evaluation/index.js';
import type { Tokenizer } from '../../tokenizer/index.js';
import type { WarmStartLine } from './line.js';

/** A trajectory as people read it: what the policy wrote is marked, the prompt is left out. */
export function transcriptOf(line: WarmStartLine, tokenizer: Tokenizer): string {
  const { record, dataset, kind, goldenAnswers } = line;
  const head = `=== ${dataset}, ${kind}: ${record.question} [${goldenAnswers.slice(0, 4).join(' | ')}]`;
  return `${head}\n${readableParts(partsOf(record, tokenizer))}`;
}
