// Clients that read when told to, over bare TCP: what a stalled reader looks like to a server.

import { createConnection, type Socket } from 'node:net';

export interface SlowClient {
  readonly socket: Socket;
  /** Bytes read so far. */
  text(): string;
  resume(): void;
  readonly closed: Promise<void>;
}

/** Sends a request and reads nothing until `resume`. */
export const slowPost = (url: string, path: string, body: unknown): Promise<SlowClient> =>
  slowSend(url, postBytes(path, body, 'connection: close'));

/** A POST as it goes over the wire; several may follow each other on one connection. */
export function postBytes(path: string, body: unknown, ...headers: readonly string[]): string {
  const text = JSON.stringify(body);
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: test',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    ...headers,
  ];
  return `${head.join('\r\n')}\r\n\r\n${text}`;
}

/** Sends bytes and reads nothing until `resume`. */
export function slowSend(url: string, bytes: string | Buffer): Promise<SlowClient> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = createConnection({ host: hostname, port: Number(port) }, () => {
      socket.pause();
      socket.write(bytes);
      resolve(client(socket));
    });
    socket.on('error', () => {});
  });
}

function client(socket: Socket): SlowClient {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.pause();
  return {
    socket,
    text: () => Buffer.concat(chunks).toString(),
    resume: () => void socket.resume(),
    closed: new Promise((resolve) => {
      socket.on('close', () => resolve());
    }),
  };
}
