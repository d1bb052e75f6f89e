// A way to PostgreSQL on which a connection can vanish without a word, as behind a cable that was pulled: both ends stay
// open, and nothing comes through.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** Connections that vanished. */
  readonly swallowed: number;
  /** Names of the parameters with which each connection began. */
  readonly startParameters: readonly (readonly string[])[];
  /** The next connection over which these words are sent vanishes before them; later ones are whole. */
  swallowFrom(words: string): void;
  close(): Promise<void>;
}

export async function startProxy(target: string): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const startParameters: string[][] = [];
  let words: string | null = null;
  let swallowed = 0;
  const server = createServer((client) => {
    const upstream = connect(target);
    let isGone = false;
    let isFirst = true;
    const pass = (from: Socket, to: Socket, onData: (bytes: Buffer) => void): void => {
      sockets.add(from);
      from.on('data', (bytes) => {
        onData(bytes);
        if (!isGone) to.write(bytes);
      });
      from.on('error', () => {});
      from.on('close', () => {
        if (!isGone) to.destroy();
      });
    };
    pass(client, upstream, (bytes) => {
      if (isFirst) startParameters.push(namesOf(bytes));
      isFirst = false;
      if (words === null || !bytes.includes(words)) return;
      words = null;
      swallowed++;
      isGone = true;
    });
    pass(upstream, client, () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get swallowed() {
      return swallowed;
    },
    startParameters,
    swallowFrom(next) {
      words = next;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Of a startup message: length, version, then names and values, each ended by a NUL. */
function namesOf(message: Buffer): string[] {
  const texts = message.toString('utf8', 8).split('\0');
  return texts.filter((text, at) => at % 2 === 0 && text !== '');
}
