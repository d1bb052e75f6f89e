// The built command line as a process of its own.

import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';

const main = resolve(__dirname, '..', '..', '..', 'dist', 'main.js');

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Called with each piece of output. */
export type Watch = (
  child: ChildProcess,
  printed: { readonly stdout: string; readonly stderr: string },
) => void;

/** What `node` is given. */
export const builtArguments = (
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
): string[] => [
  main,
  ...args,
  ...Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]),
];

export function runBuilt(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
  watch: Watch = () => {},
  nodeOptions: readonly string[] = [],
): Promise<Outcome> {
  const child = spawn(process.execPath, [...nodeOptions, ...builtArguments(args, settings)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (chunk) => {
      printed[name] += chunk;
      watch(child, printed);
    });
  return new Promise((done) => child.on('close', (code) => done({ code, ...printed })));
}

export interface PassageServer {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Finds the same passage for every query, by the protocol of Search-R1.
 * @param beforeAnswer  called with each request; its answer waits for it
 */
export async function startPassageServer(
  passage: { readonly id: string; readonly title: string; readonly text: string },
  beforeAnswer: () => Promise<void> | undefined = () => undefined,
): Promise<PassageServer> {
  const { id, title, text } = passage;
  const document = { id, contents: `"${title}"\n${text}` };
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', async () => {
      await beforeAnswer();
      const { queries } = JSON.parse(body) as { queries: string[] };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ result: queries.map(() => [{ document, score: 0.5 }]) }));
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((closed) => server.close(() => closed())),
  };
}
