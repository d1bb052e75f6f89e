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

/** UTF-8 bytes that are encoded here: a few milliseconds for the worst text, on a busy machine. */
const INLINE_BYTES = 1024;
/** What rendering one message costs beside its text, as bytes. */
const MESSAGE_BYTES = 64;

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
  const far = async (texts: Iterable<string>, bytesEach = 0) =>
    areLong(texts, bytesEach) ? await worker.client() : null;
  // The first rendering parses the template, which takes longer than many later ones.
  if (tokenizer.hasChatTemplate) tokenizer.encodeChat([{ role: 'user', content: 'Hello' }]);

  return {
    tokenizer,
    async prompt(messages, window) {
      const client = await far(
        messages.map(({ content }) => content),
        MESSAGE_BYTES,
      );
      return client === null ? inline.prompt(messages, window) : client.call('prompt', { messages, window });
    },
    async place(passages, request) {
      const client = await far(passages.flatMap(({ title, text }) => [title, text]));
      return client === null ? inline.place(passages, request) : client.call('place', { passages, request });
    },
    warm: worker.warm,
    close: worker.close,
  };
}

function areLong(texts: Iterable<string>, bytesEach: number): boolean {
  let bytes = 0;
  for (const text of texts) {
    // Every unit is at least a byte: long texts are not counted out.
    bytes += bytesEach + (text.length > INLINE_BYTES ? text.length : Buffer.byteLength(text));
    if (bytes > INLINE_BYTES) return true;
  }
  return false;
}
