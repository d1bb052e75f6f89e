// The bytes of a request's body, unpacked and bounded. A body that is too long is answered soon, also when its
// sender never comes to the end of it.

import type { IncomingMessage } from 'node:http';
import type { Readable, Transform } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { CancelledError } from '../../errors.js';
import { RequestError } from '../openai/request-error.js';

const UNPACKERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** Bytes put together in one go: new memory is slow at its first touch. */
const JOINED_AT_ONCE = 1 << 20;

/**
 * @returns the whole body, in memory of its own
 * @throws {RequestError} it is too long, packed in a way that is not known, or broken
 * @throws {CancelledError} the client left
 */
export async function readBytes(req: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const encoding = (req.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  const unpack = Object.hasOwn(UNPACKERS, encoding) ? UNPACKERS[encoding] : undefined;
  if (unpack === undefined && encoding !== 'identity' && encoding !== '')
    throw new RequestError('unsupported_media_type', 'expected a body that is plain, gzip, deflate or br');
  if (Number(req.headers['content-length'] ?? 0) > limitBytes) throw tooLarge(limitBytes);
  const chunks = await (unpack === undefined
    ? collect(req, req, limitBytes)
    : collectUnpacked(req, unpack(), limitBytes));
  return await join(chunks);
}

async function collectUnpacked(
  req: IncomingMessage,
  unpacker: Transform,
  limitBytes: number,
): Promise<Buffer[]> {
  req.pipe(unpacker);
  try {
    return await collect(req, unpacker, limitBytes);
  } finally {
    req.unpipe(unpacker);
    unpacker.destroy();
  }
}

/** @param source `req` itself, or what unpacks it */
function collect(req: IncomingMessage, source: Readable, limitBytes: number): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const stop = (): void => {
      source.off('data', onData).off('end', onEnd);
      req.off('close', onClose);
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= limitBytes) return;
      stop();
      reject(tooLarge(limitBytes));
    };
    const onEnd = (): void => {
      stop();
      resolve(chunks);
    };
    const onClose = (): void => {
      if (!req.complete) reject(new CancelledError('the client left before its request was whole'));
    };
    // Errors come in any state: a stream without a listener for them would end the process.
    source.on('error', (cause) =>
      reject(new RequestError('invalid_request', 'the body cannot be unpacked', null, cause)),
    );
    req.on('error', () => onClose());
    source.on('data', onData).on('end', onEnd);
    req.on('close', onClose);
  });
}

function tooLarge(limitBytes: number): RequestError {
  return new RequestError('request_too_large', `expected a body of at most ${limitBytes} bytes`);
}

async function join(chunks: readonly Buffer[]): Promise<Buffer> {
  const whole = Buffer.allocUnsafeSlow(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  let rested = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
    if (at - rested < JOINED_AT_ONCE) continue;
    rested = at;
    await nextTurn();
  }
  return whole;
}
