// The one place that says which questions are for validation and which for training.

import { sha256Hex } from '../util/digest.js';
import type { Question } from './questions.js';

export const PARTS = ['validation', 'training', 'all'] as const;
export type Part = (typeof PARTS)[number];

const VALIDATION_PERCENT = 20;

/** int(sha256('v' + id)[:8], 16) % 100 < 20: never trained on. */
export const isValidation = (id: string): boolean =>
  Number.parseInt(sha256Hex(`v${id}`).slice(0, 8), 16) % 100 < VALIDATION_PERCENT;

export const partOf = (id: string): Exclude<Part, 'all'> => (isValidation(id) ? 'validation' : 'training');

export const selectPart = (questions: readonly Question[], part: Part): Question[] =>
  questions.filter(({ id }) => part === 'all' || partOf(id) === part);
