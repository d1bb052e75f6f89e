// Where a body is parsed: small ones here, big ones in a worker thread.

import { createLazyWorker } from '../../runtime/index.js';
import type { Logger } from '../../telemetry/index.js';
import type { Parsed } from './attempt.js';
import { type Bodies, type BodyKind, type ParseSettings, parseBytes } from './parse.js';
import type { ParseMethods } from './parse-worker.js';

/** The worst body of this size parses within a few milliseconds. */
const INLINE_BYTES = 16 * 1024;

const SAMPLE = '{"model":"searchloop","messages":[{"role":"user","content":"Hello"}]}';

export interface BodyParser {
  /** @param bytes not usable afterwards: big ones move to the worker */
  parse<K extends BodyKind>(kind: K, bytes: Uint8Array): Promise<Parsed<Bodies[K]>>;
  /** Starts the worker, so that the first big body need not wait for it; else that body starts it. */
  warm(): void;
  close(): Promise<void>;
}

/**
 * @param maxPromptBytes asked for each big body; messages with more UTF-8 bytes come back empty, and `promptBytes` tells
 */
export function createBodyParser(
  settings: ParseSettings,
  maxPromptBytes: () => number,
  logger: Logger,
): BodyParser {
  // Without a worker, answering slowly is better than not answering.
  const worker = createLazyWorker<ParseMethods>('server/json/parse-worker', settings, (err) =>
    logger.warn({ err }, 'no worker for big bodies'),
  );

  // Schemas are compiled at their first use, which takes longer than many later ones.
  parseBytes('chat', Buffer.from(SAMPLE), settings);

  return {
    async parse(kind, bytes) {
      const client = bytes.length > INLINE_BYTES ? await worker.client() : null;
      if (client === null) return parseBytes(kind, bytes, settings);
      // A view on a buffer that others use has to be copied; a body of its own moves.
      const own = bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
      const parsed = await client.call(
        'parse',
        { kind, bytes: own, maxPromptBytes: maxPromptBytes() },
        { transfer: [own.buffer as ArrayBuffer] },
      );
      return parsed as Parsed<Bodies[typeof kind]>;
    },
    warm: worker.warm,
    close: worker.close,
  };
}
