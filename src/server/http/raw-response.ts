// An answer on a socket that express does not hold: a refused upgrade, a request that is not HTTP.

import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { errorAnswer } from '../openai/error-body.js';

/** Ends the connection also where its client never ends its own side: no timeout of Node.js watches the socket of an upgrade. */
export function refuse(socket: Duplex, error: unknown, requestId: string): void {
  socket.once('finish', () => socket.destroy());
  socket.end(rawErrorResponse(error, requestId));
}

export function rawErrorResponse(error: unknown, requestId: string): string {
  const { status, headers, body } = errorAnswer(error);
  const text = JSON.stringify(body);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(text)}`,
    `x-request-id: ${requestId}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    'connection: close',
  ];
  return `${lines.join('\r\n')}\r\n\r\n${text}`;
}
