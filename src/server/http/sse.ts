// Server-sent events on one response: one JSON on one `data:` line, comments while nothing comes, and a
// reader that does not read holds up nobody but itself.

import type { Response } from 'express';
import { CancelledError } from '../../errors.js';
import { isHeavy, jsonInTurns } from '../json/pieces.js';
import { hangUp } from './client-gone.js';

export interface SseOptions {
  readonly bufferBytes: number;
  readonly streamCommentMs: number;
  /** Longest wait for the reader to take `bufferBytes`: what waits for it holds a place that others wait for. */
  readonly slowReaderTimeoutMs: number;
}

export interface SseStream {
  readonly opened: boolean;
  /** Sends status and headers; from here on a failure is an event. Idempotent. */
  open(): void;
  /**
   * Sends events in one write and waits while more than `bufferBytes` lie unsent.
   * @throws {CancelledError} the client is gone, or takes too little
   */
  send(events: readonly unknown[]): Promise<void>;
  /** Sends `[DONE]` and ends. */
  end(): void;
}

export function createSse(res: Response, options: SseOptions): SseStream {
  let opened = false;
  let timer: NodeJS.Timeout | undefined;

  const open = (): void => {
    if (opened || res.destroyed) return;
    opened = true;
    res.status(200).set({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
    res.flushHeaders();
    timer = setInterval(() => {
      // Not while something waits to be sent: a comment would hide that the reader takes nothing.
      if (res.writableLength === 0 && !res.writableEnded) res.write(': keep-alive\n\n');
    }, options.streamCommentMs);
    res.once('close', () => clearInterval(timer));
  };

  return {
    get opened() {
      return opened;
    },
    open,
    async send(events) {
      const text = events.some(isHeavy) ? await linesInTurns(events) : events.map(lineOf).join('');
      if (res.destroyed || res.closed) throw new CancelledError('the client went away');
      if (text === '') return;
      open();
      timer?.refresh();
      const flowing = res.write(text);
      if (flowing || res.writableLength < options.bufferBytes) return;
      const parts = Math.ceil(res.writableLength / options.bufferBytes);
      const slow = setTimeout(() => hangUp(res), parts * options.slowReaderTimeoutMs);
      await drained(res).finally(() => clearTimeout(slow));
    },
    end() {
      open();
      clearInterval(timer);
      if (!res.destroyed) res.end('data: [DONE]\n\n');
    },
  };
}

const lineOf = (event: unknown): string => `data: ${JSON.stringify(event)}\n\n`;

async function linesInTurns(events: readonly unknown[]): Promise<string> {
  let text = '';
  for (const event of events)
    text += isHeavy(event) ? `data: ${await jsonInTurns(event)}\n\n` : lineOf(event);
  return text;
}

/**
 * Resolves when all written bytes went out.
 * @throws {CancelledError} the client is gone
 */
export async function drained(res: Response): Promise<void> {
  // A `close` that has been does not come again.
  if (res.destroyed || res.closed) throw new CancelledError('the client went away');
  await new Promise<void>((resolve, reject) => {
    const onDrain = (): void => {
      res.off('close', onClose);
      resolve();
    };
    const onClose = (): void => {
      res.off('drain', onDrain);
      reject(new CancelledError('the client went away'));
    };
    res.once('drain', onDrain);
    res.once('close', onClose);
  });
}
