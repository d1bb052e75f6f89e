// How far keys and values reach, measured on a few texts when the engine starts: an int8 cache has one fixed step for
// each channel. What lies beyond the margin is cut.

import { cacheSteps } from '../../model/index.js';
import type { Tokenizer } from '../../tokenizer/index.js';
import type { KvMemory } from '../pool/kv-memory.js';
import type { CacheSteps } from './step-binding.js';
import type { StepSessions } from './step-sessions.js';

/** Different kinds of text, as different channels answer to them; all of them begin at position 0. */
const TEXTS = [
  'The river rises in the hills north of the town, turns east below the old bridge and reaches the sea after ninety miles. ' +
    'Who built the bridge, and in which year was it finished?',
  '<p class="note">Canberra became the capital in 1913.</p>\n<p>Sydney (5,3 million) is larger, but 286 km away.</p>\n' +
    '# Answer\n\n1. Not **Sydney**.\n2. Canberra; see [2] and https://example.org/a?b=c&d=%20e',
  'function mean(values) {\n  let sum = 0;\n  for (const v of values) sum += v;\n  return sum / values.length; // NaN if empty\n}\n' +
    '{"id": 42, "ok": true, "list": [1.5, -2e10, null]}',
  'Der Fluß entspringt im Gebirge. ¿Dónde nace el río? Где начинается река? 这条河从哪里开始？ 1234567890 !!! *** ### — “…”',
];

/** Token ids of the texts; each is also led in as a chat's turn is, by the model's end token. */
export function calibrationSamples(
  tokenizer: Tokenizer,
  eosTokenIds: readonly number[],
  mostTokens: number,
): readonly (readonly number[])[] {
  return TEXTS.map((text, index) => {
    const lead = index % 2 === 0 ? [] : eosTokenIds.slice(0, 1);
    return [...lead, ...tokenizer.encodePlain(text)].slice(0, mostTokens);
  });
}

/** @param memory one float32 slot, that of the sessions */
export async function measureCacheSteps(
  sessions: StepSessions,
  memory: KvMemory<Float32Array>,
  samples: readonly (readonly number[])[],
): Promise<CacheSteps> {
  const { kvHeads, headDim, capacity } = memory.shape;
  const step = sessions.binding(0, 1, 'many', false);
  let found: Float32Array[] = [];
  for (const sample of samples) {
    const ids = sample.slice(0, capacity);
    step.read(ids, 0, ids.length);
    await step.run();
    const steps = memory.buffers.map((data, index) =>
      cacheSteps({ data, kvHeads, capacity, headDim, length: ids.length, rotated: index % 2 === 0 }),
    );
    found = steps.map((now, index) => now.map((value, at) => Math.max(value, found[index]?.[at] ?? 0)));
  }
  return found;
}
