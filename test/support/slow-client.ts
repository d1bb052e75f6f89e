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
export function slowPost(url: string, path: string, body: unknown): Promise<SlowClient> {
  const text = JSON.stringify(body);
  const { hostname, port } = new URL(url);
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: test',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    'connection: close',
  ];
  return new Promise((resolve) => {
    const socket = createConnection({ host: hostname, port: Number(port) }, () => {
      socket.pause();
      socket.write(`${head.join('\r\n')}\r\n\r\n${text}`);
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
