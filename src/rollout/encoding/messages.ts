// What the encoding worker is started with and what it can be asked.

import type { Passage } from '../../retrieval/index.js';
import type { Method } from '../../runtime/index.js';
import type { ChatMessage } from '../../tokenizer/index.js';
import type { PlacedPassages, PlaceOptions } from '../passages.js';

export type PlaceRequest = Omit<PlaceOptions, 'tokenizer'>;

export interface EncodingStart {
  /** JSON of a `TokenizerSource`. */
  readonly source: string;
}

export interface EncodingMethods {
  readonly prompt: Method<{ readonly messages: readonly ChatMessage[]; readonly window: number }, number[]>;
  readonly place: Method<
    { readonly passages: readonly Passage[]; readonly request: PlaceRequest },
    PlacedPassages | null
  >;
}
