// The way out to one client. A client that reads slowly pauses its own requests; one that does not read is closed.

import type { WebSocket } from 'ws';
import { CancelledError } from '../../errors.js';
import { isHeavy, jsonInTurns } from '../json/pieces.js';
import { CLOSE, closeReason } from './close.js';

export interface OutboxOptions {
  /** Unsent bytes at which senders wait. */
  readonly bufferBytes: number;
  /** Unsent bytes at which one more event closes the socket. */
  readonly hardBytes: number;
  /** Longest wait for a client that takes nothing. */
  readonly slowReaderTimeoutMs: number;
}

export interface Outbox {
  /**
   * Sends one event and waits while too much lies unsent.
   * @throws {CancelledError} the socket is closed
   */
  send(event: unknown): Promise<void>;
}

export function createOutbox(socket: WebSocket, options: OutboxOptions): Outbox {
  const giveUp = (reason: string): void => {
    socket.close(CLOSE.slowReader, closeReason(reason));
    // The close frame waits behind what the client does not read.
    socket.terminate();
  };

  return {
    async send(event) {
      const text = isHeavy(event) ? await jsonInTurns(event) : JSON.stringify(event);
      if (socket.readyState !== socket.OPEN) throw new CancelledError('the socket is closed');
      // Before it is sent: one big event to a client that reads is no fault.
      if (socket.bufferedAmount >= options.hardBytes) {
        giveUp('too much lies unsent');
        throw new CancelledError('the socket is closed');
      }
      const sent = new Promise<void>((resolve, reject) => {
        socket.send(text, (error) =>
          error ? reject(new CancelledError('the socket is closed', { cause: error })) : resolve(),
        );
      });
      if (socket.bufferedAmount < options.bufferBytes) {
        sent.catch(() => {});
        return;
      }
      await watched(sent, socket, options, () => giveUp('too little was read for too long'));
    },
  };
}

/**
 * Waits for `sent`; calls `onStuck` when a whole timeout passes in which the client took nothing, or took less than
 * `bufferBytes` in each on the average: what waits for it holds a place that others wait for.
 */
async function watched(
  sent: Promise<void>,
  socket: WebSocket,
  { bufferBytes, slowReaderTimeoutMs: timeoutMs }: OutboxOptions,
  onStuck: () => void,
): Promise<void> {
  const longest = setTimeout(onStuck, timeoutMs * Math.ceil(socket.bufferedAmount / bufferBytes));
  let before = socket.bufferedAmount;
  const timer = setInterval(() => {
    if (socket.bufferedAmount >= before) onStuck();
    before = socket.bufferedAmount;
  }, timeoutMs);
  try {
    await sent;
  } finally {
    clearInterval(timer);
    clearTimeout(longest);
  }
}
