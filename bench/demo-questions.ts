import { join } from 'node:path';
import { packageRoot } from '#searchloop/config/index.js';
import { type Question, readQuestions } from '#searchloop/evaluation/index.js';

/** Questions that the demo index answers. */
export const demoQuestions = (): Promise<Question[]> =>
  readQuestions(join(packageRoot, 'index', 'demo', 'questions.jsonl'));
