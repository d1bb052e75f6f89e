// Runs an encoder's graph over rows of token ids.

import type { EncoderGraph } from '../../../src/model/index.js';
import { allocate, type InferenceSession, openRuntime } from '../../../src/runtime/index.js';

export async function openEncoder(graph: EncoderGraph): Promise<InferenceSession> {
  return (await openRuntime()).openSession(graph.file, { threads: 2, spinning: false });
}

/** Embeds rows of ids in one run, padded on the right to the longest and by `extra`. */
export async function embedRows(
  session: InferenceSession,
  dimension: number,
  rows: readonly (readonly number[])[],
  extra = 0,
): Promise<Float32Array[]> {
  const width = Math.max(...rows.map((row) => row.length)) + extra;
  const inputIds = allocate('int64', [rows.length, width]);
  const mask = allocate('int64', [rows.length, width]);
  for (const [index, row] of rows.entries())
    for (const [at, id] of row.entries()) {
      (inputIds.data as BigInt64Array)[index * width + at] = BigInt(id);
      (mask.data as BigInt64Array)[index * width + at] = 1n;
    }
  const output = allocate('float32', [rows.length, dimension]);
  const binding = session.createBinding();
  binding.bindInput('input_ids', inputIds);
  binding.bindInput('attention_mask', mask);
  binding.bindOutput('embeddings', output);
  await binding.run();
  binding.close();
  const data = output.data as Float32Array;
  return rows.map((_, row) => data.slice(row * dimension, (row + 1) * dimension));
}
