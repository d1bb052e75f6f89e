// An answer on a socket that express does not hold: a refused upgrade, a request that is not HTTP.

import { STATUS_CODES } from 'node:http';
import { errorAnswer } from '../openai/error-body.js';

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
