// One client of GET /v1/stream: its frames in, the events of its requests out.

import type { WebSocket } from 'ws';
import type { Logger } from '../../telemetry/index.js';
import { startChat } from '../answers/chat-run.js';
import { createCompletion } from '../answers/completion.js';
import type { ServerContext } from '../context.js';
import type { Identity } from '../http/api-keys.js';
import { noteError } from '../http/errors.js';
import { unwrap } from '../json/attempt.js';
import { errorAnswer } from '../openai/error-body.js';
import { RequestError } from '../openai/request-error.js';
import { CLOSE, closeReason } from './close.js';
import { socketEventOf } from './events.js';
import type { SocketFrame } from './frames.js';
import { createOutbox, type Outbox } from './outbox.js';

/** Frames without sense after which a client is sent away. */
const MOST_FAULTS = 64;

type RequestFrame = Extract<SocketFrame, { type: 'request' }>;

interface Connection {
  readonly context: ServerContext;
  readonly logger: Logger;
  readonly socket: WebSocket;
  readonly outbox: Outbox;
  /** @see serveConnection */
  readonly identify: () => Identity;
  /** Requests in flight: their id and how to cancel them. */
  readonly running: Map<string, () => void>;
}

/** @param identify  called for each request: a key may be revoked while its socket is open. Throws what refuses it */
export function serveConnection(
  socket: WebSocket,
  context: ServerContext,
  logger: Logger,
  identify: () => Identity,
): void {
  const { settings } = context;
  const connection: Connection = {
    context,
    logger,
    socket,
    identify,
    outbox: createOutbox(socket, {
      bufferBytes: settings.streamBufferBytes,
      hardBytes: settings.streamBufferHardBytes,
      slowReaderTimeoutMs: settings.slowReaderTimeoutMs,
    }),
    running: new Map(),
  };
  // Frames are taken one after the other: a cancel must not overtake its request while that is parsed. While
  // one is in hand the socket is not read, so a flood of frames waits with its sender.
  let before = Promise.resolve();
  let waiting = 0;
  let faults = 0;
  const take = async (data: Buffer, isBinary: boolean): Promise<void> => {
    if (socket.readyState !== socket.OPEN) return;
    try {
      await receive(connection, data, isBinary);
    } catch (error) {
      await fail(connection, null, error);
      faults += 1;
      if (faults === MOST_FAULTS)
        socket.close(CLOSE.tooManyFaults, closeReason(`${MOST_FAULTS} frames could not be read`));
    }
  };
  socket.on('message', (data, isBinary) => {
    socket.pause();
    waiting += 1;
    before = before
      .then(() => take(data as Buffer, isBinary))
      .then(() => {
        waiting -= 1;
        if (waiting === 0) socket.resume();
      });
  });
  socket.on('ping', (data) => {
    // Answers that nobody reads must not pile up.
    if (socket.bufferedAmount >= settings.streamBufferHardBytes) socket.terminate();
    else socket.pong(data);
  });
  socket.on('close', () => {
    for (const cancel of connection.running.values()) cancel();
  });
  // A broken frame: the library closes the socket by itself.
  socket.on('error', (err) => logger.info({ err: { message: err.message } }, 'socket failed'));
}

async function receive(connection: Connection, data: Buffer, isBinary: boolean): Promise<void> {
  if (isBinary)
    throw new RequestError('invalid_json', 'expected text frames that hold JSON, received a binary one');
  const frame = unwrap(await connection.context.bodies.parse('frame', data));
  if (frame.type === 'request' && connection.running.has(frame.id))
    // Not under its id: that names the request that goes on.
    throw new RequestError('invalid_request', 'id: a request with this id is running', 'id');
  if (frame.type === 'cancel') {
    // An id that is not running has ended, or never was: both are no news.
    connection.running.get(frame.id)?.();
    return;
  }
  // Not awaited: requests run side by side.
  void answer(connection, frame);
}

async function answer(connection: Connection, frame: RequestFrame): Promise<void> {
  const { context, running, socket } = connection;
  const { id } = frame;
  let cancelled = false;
  let signal: AbortSignal | null = null;
  try {
    const identity = connection.identify();
    const limit = context.settings.socketRequestLimit;
    if (running.size >= limit)
      throw new RequestError('too_many_requests', `expected at most ${limit} requests at once on one socket`);
    const work = context.activity.begin();
    signal = work.signal;
    running.set(id, () => {
      cancelled = true;
      work.cancel();
    });
    try {
      await run(connection, frame, work.signal, identity);
    } finally {
      running.delete(id);
      work.end();
    }
  } catch (error) {
    if (cancelled) await send(connection, { id, type: 'cancelled' });
    else await fail(connection, id, signal?.aborted ? signal.reason : error);
    if (error instanceof RequestError && error.code === 'invalid_api_key')
      socket.close(CLOSE.keyRefused, closeReason(error.message));
  }
}

async function run(
  connection: Connection,
  frame: RequestFrame,
  signal: AbortSignal,
  identity: Identity,
): Promise<void> {
  const { context, outbox } = connection;
  const { id } = frame;
  const chat = startChat(context, unwrap(frame.body), signal, identity);
  const completion = createCompletion(chat, context.settings);
  await outbox.send({ id, type: 'created', response: { ...chat.head } });
  for await (const item of chat.events) {
    completion.add(item);
    const event = socketEventOf(item, chat);
    if (event) await outbox.send({ id, ...event });
  }
  await outbox.send({ id, type: 'done', response: completion.result() });
}

/** @param id null for a frame that names no request */
async function fail(connection: Connection, id: string | null, error: unknown): Promise<void> {
  const { status, body } = errorAnswer(error);
  noteError(connection.logger, { status, body, headers: {} }, error);
  await send(connection, { id, type: 'error', status, ...body });
}

/** Last words: when the socket is closed there is nobody to tell. */
async function send(connection: Connection, event: unknown): Promise<void> {
  await connection.outbox.send(event).catch(() => {});
}
