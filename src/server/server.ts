// One HTTP server with its sockets, from listening to a stop that lets answers finish.

import type { Server } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import { UnavailableError } from '../errors.js';
import { createActivity } from './activity.js';
import { maxPromptBytes } from './answers/prompt-length.js';
import { createApp } from './app.js';
import type { ServerContext, ServerOptions } from './context.js';
import { createKeyRing } from './http/api-keys.js';
import { createListener } from './http/listener.js';
import { createBodyParser } from './json/body-parser.js';
import { createSocketServer } from './websocket/socket-server.js';

export interface SearchloopServer {
  /** @returns address to reach it, such as `http://127.0.0.1:8000` */
  listen(): Promise<{ readonly url: string; readonly port: number }>;
  /**
   * Takes no more, lets answers finish for `server.shutdownGraceMs`, then ends what is left with an error event.
   * Idempotent. The parts stay open: they belong to the caller.
   */
  close(): Promise<void>;
}

/** Time for sent bytes to reach their readers once all work has ended. */
const FLUSH_MS = 1000;
/** Time after listening at which what is rarely needed is made ready. */
const WARM_AFTER_MS = 2000;

export function createServer(options: ServerOptions): SearchloopServer {
  const { server: settings, rollout, store: keeping, model } = options.config;
  const context: ServerContext = {
    settings,
    rollout,
    liveMethods: model.liveMethods,
    parts: options.parts,
    store: options.store ?? null,
    loop: options.loop ?? (() => null),
    loopTrouble: options.loopTrouble ?? (() => null),
    keepByDefault: keeping.keepByDefault,
    logger: options.logger,
    activity: createActivity(),
    bodies: createBodyParser(
      { retrieve: { maxQueries: settings.retrieveMaxQueries, defaultTopK: rollout.topK } },
      () => maxPromptBytes(options.parts.policy()),
      options.logger,
    ),
    startedAt: Math.floor(Date.now() / 1000),
  };
  const keys = createKeyRing(settings.apiKeys, context.store, (err) =>
    options.logger.warn({ err }, 'the keys cannot be read'),
  );
  const sockets = createSocketServer(context, keys);
  const http = createListener(createApp(context, keys), sockets.upgrade);
  let warming: NodeJS.Timeout | undefined;
  let closing: Promise<void> | null = null;

  return {
    async listen() {
      keys.start();
      const address = await listen(http, settings.host, settings.port);
      // A connection that cannot be taken (no file descriptors, no memory) ends nothing but itself.
      http.on('error', (err) => options.logger.error({ err }, 'a connection could not be taken'));
      warming = setTimeout(context.bodies.warm, WARM_AFTER_MS);
      return address;
    },
    close: () => (closing ??= close()),
  };

  async function close(): Promise<void> {
    clearTimeout(warming);
    keys.stop();
    // HTTP's own close would cut off answers that are complete but not all sent: it comes when work has ended.
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(http, () => resolve()));
    await context.activity.stop(settings.shutdownGraceMs);
    http.close();
    const timer = setTimeout(() => http.closeAllConnections(), FLUSH_MS);
    await Promise.all([closed, sockets.close(FLUSH_MS), context.bodies.close()]);
    clearTimeout(timer);
  }
}

const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there; --port chooses another port, 0 any free one',
  EACCES: 'this user may not; --port chooses another port',
  EADDRNOTAVAIL: 'this machine has no such address; --host chooses another',
  ENOTFOUND: 'there is no host of this name; --host chooses another',
};

/** @throws {UnavailableError} saying why it cannot listen there */
function listen(http: Server, host: string, port: number): Promise<{ url: string; port: number }> {
  return new Promise((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException): void => {
      const reason = LISTEN_FAULTS[cause.code ?? ''] ?? cause.message;
      reject(new UnavailableError(`cannot listen on ${host} port ${port}: ${reason}`, { cause }));
    };
    http.once('error', fail);
    http.listen(port, host, () => {
      http.off('error', fail);
      const address = http.address() as AddressInfo;
      const name = address.family === 'IPv6' ? `[${address.address}]` : address.address;
      resolve({ url: `http://${name}:${address.port}`, port: address.port });
    });
  });
}
