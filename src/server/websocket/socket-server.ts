// GET /v1/stream: upgrades, the heartbeat, and the end of all sockets.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { ServerContext } from '../context.js';
import { assertScope, bearerOf, type Identity, type KeyRing } from '../http/api-keys.js';
import { isOriginAllowed } from '../http/cors.js';
import { isForeignPage } from '../http/page.js';
import { refuse } from '../http/raw-response.js';
import { requestIdOf } from '../http/request-id.js';
import { RequestError } from '../openai/request-error.js';
import { CLOSE, closeReason } from './close.js';
import { serveConnection } from './connection.js';
import { Heartbeat } from './heartbeat.js';

const PATH = '/v1/stream';
/** Browsers cannot set headers on a socket: they offer the key as a subprotocol beside this one. */
const PROTOCOL = 'searchloop';
const KEY_PROTOCOL = 'searchloop-api-key.';
export interface SocketServer {
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Says goodbye to all clients and ends those that do not leave within `graceMs`. */
  close(graceMs: number): Promise<void>;
}

export function createSocketServer(context: ServerContext, keys: KeyRing): SocketServer {
  const { settings } = context;
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: settings.bodyLimitBytes,
    perMessageDeflate: false,
    // Of many frames that came together each gets a turn of its own, so that a flood holds up nobody else.
    allowSynchronousEvents: false,
    autoPong: false,
    handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
  });
  const heartbeat = new Heartbeat(settings.socketHeartbeatMs);
  const ids = new WeakMap<IncomingMessage, string>();
  server.on('headers', (headers, req) => headers.push(`x-request-id: ${ids.get(req)}`));
  server.on('wsClientError', (_error, socket, req) => {
    const error = new RequestError('invalid_request', 'the request is not a valid WebSocket upgrade');
    refuse(socket, error, ids.get(req) ?? requestIdOf(undefined));
  });

  const accept = (socket: WebSocket, requestId: string, identify: () => Identity): void => {
    heartbeat.watch(socket);
    const logger = context.logger.child({ requestId });
    serveConnection(socket, context, logger, identify);
  };

  return {
    upgrade(req, socket, head) {
      const id = requestIdOf(req.headers['x-request-id']);
      socket.on('error', () => socket.destroy());
      const identify = (): Identity => check(req, context, keys);
      try {
        identify();
      } catch (error) {
        refuse(socket, error, id);
        return;
      }
      ids.set(req, id);
      server.handleUpgrade(req, socket, head, (client) => accept(client, id, identify));
    },
    async close(graceMs) {
      heartbeat.stop();
      const ended = [...server.clients].map(
        (client) => new Promise<void>((resolve) => client.once('close', () => resolve())),
      );
      for (const client of server.clients)
        client.close(CLOSE.goingAway, closeReason('the server is shutting down'));
      const timer = setTimeout(() => {
        for (const client of server.clients) client.terminate();
      }, graceMs);
      await Promise.all(ended);
      clearTimeout(timer);
      server.close();
    },
  };
}

/** Who asks, as the keys are now. @throws {RequestError} why this upgrade, or a request on its socket, is refused */
function check(req: IncomingMessage, context: ServerContext, keys: KeyRing): Identity {
  const path = req.url?.split('?')[0];
  if (path !== PATH)
    throw new RequestError('route_not_found', `there is no WebSocket at this path; expected ${PATH}`);
  const { settings } = context;
  if (!isOriginAllowed(req.headers, settings.corsOrigins))
    throw new RequestError('origin_not_allowed', 'requests from this origin are not allowed');
  const offered = req.headers['sec-websocket-protocol']?.split(',').map((item) => item.trim()) ?? [];
  const key = offered.find((item) => item.startsWith(KEY_PROTOCOL))?.slice(KEY_PROTOCOL.length);
  const identity = keys.check(
    bearerOf(req.headers.authorization) ?? key,
    isForeignPage(req.headers, settings),
  );
  assertScope(identity, 'ask');
  if (context.activity.stopping) throw new RequestError('shutting_down', 'the server is shutting down');
  return identity;
}
