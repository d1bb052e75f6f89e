// A PEFT folder, read, checked and laid out for the graph. Takes some tenths of a second, so not in the thread that decodes.

import { InvalidInputError } from '../../errors.js';
import {
  type Adapter,
  type DecoderConfig,
  LARGEST_ADAPTER_WEIGHT,
  layOutAdapters,
  readAdapter,
} from '../../model/index.js';
import type { ReadAdapter } from '../messages.js';

/** @throws what `readAdapter` does; {InvalidInputError} a weight is too large */
export function readLaidOut(folder: string, config: DecoderConfig, maxRank: number): ReadAdapter {
  const adapter = readAdapter(folder, config, { maxRank });
  checkSize(adapter, folder);
  const { ranks, spans, inputs } = layOutAdapters(config, [adapter]);
  return { version: adapter.digest, rank: adapter.rank, layout: { ranks, spans, inputs } };
}

/** Memory that may move with the adapter to another thread. */
export const buffersOf = ({ layout }: ReadAdapter): ArrayBuffer[] =>
  Object.values(layout.inputs).map(({ data }) => data.buffer as ArrayBuffer);

function checkSize(adapter: Adapter, folder: string): void {
  for (const { layer, module, scale, a, b } of adapter.modules)
    for (const [side, values, factor] of [
      ['A', a, 1],
      ['B', b, scale],
    ] as const)
      for (const value of values)
        if (!(Math.abs(value * factor) <= LARGEST_ADAPTER_WEIGHT))
          throw new InvalidInputError(
            `${folder}: lora_${side} of ${module} in layer ${layer} holds ${value} (scale ${factor}); at most ${LARGEST_ADAPTER_WEIGHT} is accepted`,
          );
}
