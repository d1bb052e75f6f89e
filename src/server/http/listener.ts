// The HTTP server before any route: what is not HTTP, asks for another protocol or lacks a host still gets JSON,
// or is answered as far as it can be understood.

import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorAnswer } from '../openai/error-body.js';
import { RequestError } from '../openai/request-error.js';
import { hangUp } from './client-gone.js';
import { rawErrorResponse } from './raw-response.js';
import { requestIdOf } from './request-id.js';

/**
 * Time that a connection may rest between two requests: longer than clients and proxies keep theirs (60 s is common), so
 * that none sends a request into a connection that is being closed.
 */
const REST_MS = 75_000;

export type UpgradeListener = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

export function createListener(app: RequestListener, onWebSocket: UpgradeListener): Server {
  const unanswered = new WeakMap<Duplex, Set<ServerResponse>>();
  const openOn = (socket: Duplex): Set<ServerResponse> => {
    const known = unanswered.get(socket);
    if (known !== undefined) return known;
    const open = new Set<ServerResponse>();
    unanswered.set(socket, open);
    socket.once('close', () => [...open].forEach(hangUp));
    return open;
  };
  const answer: RequestListener = (req, res) => {
    const open = openOn(req.socket).add(res);
    res.once('close', () => open.delete(res));
    if (req.headers.host !== undefined || req.httpVersion === '1.0') app(req, res);
    else {
      const { status, body } = errorAnswer(new RequestError('invalid_request', 'expected the header "Host"'));
      res.writeHead(status, {
        'content-type': 'application/json; charset=utf-8',
        'x-request-id': requestIdOf(req.headers['x-request-id']),
        connection: 'close',
      });
      res.end(JSON.stringify(body));
    }
  };
  // Node.js answers these two by itself otherwise, without a body.
  const http = createServer({ requireHostHeader: false, keepAliveTimeout: REST_MS }, answer);
  http.on('checkExpectation', answer);
  http.on('upgrade', async (req, socket, head) => {
    const onError = (): void => void socket.destroy();
    socket.on('error', onError);
    // Requests may be sent without waiting: answers that are still to come go out first.
    await answered(socket, openOn(socket));
    if (socket.destroyed) return;
    socket.off('error', onError);
    if (/(^|,)\s*websocket\s*(,|$)/i.test(req.headers.upgrade ?? '')) onWebSocket(req, socket, head);
    else handBack(http, req, socket, head);
  });
  http.on('clientError', answerClientError);
  return http;
}

/**
 * Resolves when the open answers of a connection are out. At an upgrade Node.js lets go of the socket, so what it tells
 * is passed on to them here.
 */
async function answered(socket: Duplex, open: ReadonlySet<ServerResponse>): Promise<void> {
  const passOn = (event: 'drain' | 'timeout') => (): void => {
    for (const res of open) if (res.socket === socket) res.emit(event);
  };
  const onDrain = passOn('drain');
  const onTimeout = passOn('timeout');
  socket.on('drain', onDrain).on('timeout', onTimeout);
  await Promise.all([...open].map((res) => new Promise((resolve) => res.once('close', resolve))));
  socket.off('drain', onDrain).off('timeout', onTimeout);
}

/**
 * A request that asks for another protocol (Java's own client offers `h2c` with every request) is answered as the
 * HTTP request that it is. Node.js hands its socket over; it is given back with the request on it, without the
 * wish for an upgrade.
 * @param head what came behind the headers
 */
function handBack(http: Server, req: IncomingMessage, socket: Duplex, head: Buffer): void {
  const lines = [`${req.method} ${req.url} HTTP/${req.httpVersion}`];
  for (let at = 0; at < req.rawHeaders.length; at += 2) {
    const name = req.rawHeaders[at] as string;
    if (!UPGRADE_HEADERS.has(name.toLowerCase())) lines.push(`${name}: ${req.rawHeaders[at + 1]}`);
  }
  if (/(^|,)\s*close\s*(,|$)/i.test(req.headers.connection ?? '')) lines.push('Connection: close');
  // Header texts are bytes to Node.js.
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  http.emit('connection', socket);
}

const UPGRADE_HEADERS = new Set(['upgrade', 'connection', 'http2-settings']);

/** What cannot be read as HTTP still gets JSON. */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  // In the middle of an answer, more bytes would be taken for a part of it.
  const isFresh = socket.writable && (socket as Socket).bytesWritten === 0;
  if (error.code === 'ECONNRESET' || !isFresh) socket.destroy();
  else socket.end(rawErrorResponse(clientError(error.code), requestIdOf(undefined)));
}

function clientError(code: string | undefined): RequestError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new RequestError('request_header_too_large', 'expected headers of at most 16 KiB');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new RequestError('invalid_request', 'the request did not arrive in time');
  return new RequestError('invalid_request', 'the request is not valid HTTP');
}
