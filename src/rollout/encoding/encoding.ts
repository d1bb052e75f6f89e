// Where texts become tokens: short ones on this thread, long ones in a worker, so that the thread that answers
// everybody is never held up by one long text.

import type { Passage } from '../../retrieval/index.js';
import { createLazyWorker } from '../../runtime/index.js';
import {
  type ChatMessage,
  createTokenizer,
  type Tokenizer,
  type TokenizerSource,
} from '../../tokenizer/index.js';
import { type PlacedPassages, placePassages } from '../passages.js';
import { encodePrompt } from './encode-prompt.js';
import type { EncodingMethods, EncodingStart, PlaceRequest } from './messages.js';

export interface Encoding {
  /**
   * Ids of the rendered chat.
   * @throws {ContextLengthError} they leave no room for a token in `window`
   */
  prompt(messages: readonly ChatMessage[], window: number): Promise<number[]>;
  /** @see placePassages */
  place(passages: readonly Passage[], request: PlaceRequest): Promise<PlacedPassages | null>;
}

export interface BackgroundEncoding extends Encoding {
  /** For what is short, and for decoding. */
  readonly tokenizer: Tokenizer;
  /** Starts the worker, so that the first long text need not wait for it. */
  warm(): void;
  close(): Promise<void>;
}

/** UTF-16 units that any tokenizer encodes within a few milliseconds. */
const INLINE_LENGTH = 2048;

/** All on this thread: for the command line and for tests. */
export function inlineEncoding(tokenizer: Tokenizer): Encoding {
  return {
    prompt: async (messages, window) => encodePrompt(messages, tokenizer, window),
    place: async (passages, request) => placePassages(passages, { ...request, tokenizer }),
  };
}

/**
 * Long texts go to a worker; where that cannot be had they are encoded here, for a slow answer is better than none.
 * @param onFailure  told why the worker did not start
 * @throws what `createTokenizer` throws
 */
export function createBackgroundEncoding(
  source: TokenizerSource,
  onFailure: (error: Error) => void = () => {},
): BackgroundEncoding {
  const tokenizer = createTokenizer(source);
  const inline = inlineEncoding(tokenizer);
  // One text crosses to a thread at once; a vocabulary as objects would hold this thread at every start.
  const start: EncodingStart = { source: JSON.stringify(source) };
  const worker = createLazyWorker<EncodingMethods>('rollout/encoding/worker', start, onFailure);
  const far = async (length: number) => (length > INLINE_LENGTH ? await worker.client() : null);

  return {
    tokenizer,
    async prompt(messages, window) {
      const client = await far(sum(messages, (message) => message.content.length));
      return client === null ? inline.prompt(messages, window) : client.call('prompt', { messages, window });
    },
    async place(passages, request) {
      const client = await far(sum(passages, ({ title, text }) => title.length + text.length));
      return client === null ? inline.place(passages, request) : client.call('place', { passages, request });
    },
    warm: worker.warm,
    close: worker.close,
  };
}

const sum = <T>(items: readonly T[], size: (item: T) => number): number =>
  items.reduce((total, item) => total + size(item), 0);
