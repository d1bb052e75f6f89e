// Which questions of a file a command takes, and what is said of those that it leaves out.

import { type Part, type Question, readQuestions, selectPart } from '../evaluation/index.js';
import { counted } from './counted.js';

const REST: Readonly<Record<Part, string>> = {
  all: '',
  training: '; the rest is for validation',
  validation: '; --split all takes all',
};

export interface ChosenQuestions {
  readonly all: readonly Question[];
  readonly taken: Question[];
}

/** The training part. @param onNote  hears how many of how many questions that is */
export async function trainingQuestions(
  file: string,
  onNote: (line: string) => void,
): Promise<ChosenQuestions> {
  const all = await readQuestions(file);
  const taken = selectPart(all, 'training');
  onNote(takenText(file, { all, taken }, 'training'));
  return { all, taken };
}

/** @param narrowed  flags that leave out more */
export function takenText(
  file: string,
  { all, taken }: ChosenQuestions,
  part: Part,
  narrowed: readonly string[] = [],
): string {
  const counts = `${taken.length} of ${counted(all.length, 'question')} in ${file}`;
  const by = [...(part === 'all' ? [] : [`the ${part} part`]), ...narrowed].join(', ') || 'all parts';
  return `${counts}: ${by}${taken.length < all.length ? REST[part] : ''}`;
}
