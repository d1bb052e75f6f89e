// The registry of methods; a new one is a file here and a line below.

import type { MethodName } from '../events.js';
import { chat } from './chat.js';
import { cot } from './cot.js';
import { direct } from './direct.js';
import type { Method } from './method.js';
import { rag } from './rag.js';
import { searchR1 } from './search-r1.js';

export const METHODS: Readonly<Record<MethodName, Method>> = {
  'search-r1': searchR1,
  rag,
  cot,
  direct,
  chat,
};
