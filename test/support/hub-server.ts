// A server that speaks the part of the hub's protocol that we use, and can be told to fail.

import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HubServer {
  readonly endpoint: string;
  /** Ranges of the requests for bytes, in order; `null` for a whole file. Probes of one byte do not count. */
  readonly transfers: { path: string; range: string | null; bytesSent: number }[];
  /** Authorization headers seen on the hub's own address and on the store that it sends to. */
  readonly tokens: { hub: Set<string>; store: Set<string> };
  faults: Faults;
  close(): Promise<void>;
}

export interface Faults {
  /** Cuts the connection after this many bytes of each of the next transfers. */
  cuts?: number[];
  /** Status of every answer. */
  status?: number;
  /** Answers whole files whatever range is asked for. */
  ignoreRange?: boolean;
  /** Pause after each part of 64 KiB. */
  slowMs?: number;
  /** Serves these bytes in place of the true ones. */
  replaced?: Readonly<Record<string, Buffer>>;
  /** Lists this in place of a large file's sum. */
  listedSum?: string;
  /** Leaves requests without an answer. */
  silent?: boolean;
}

export const COMMIT = 'c'.repeat(40);

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
export const gitSha1 = (bytes: Buffer): string =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');

/**
 * @param repo  `owner/name` or `datasets/owner/name`
 * @param files  path to content; files above 1 KiB are listed as large ones, with their sha256
 */
export async function startHub(repo: string, files: Readonly<Record<string, Buffer>>): Promise<HubServer> {
  const transfers: HubServer['transfers'] = [];
  const tokens: HubServer['tokens'] = { hub: new Set(), store: new Set() };
  const servers: Server[] = [];
  const hub = { endpoint: '', transfers, tokens, faults: {} as Faults, close: async () => {} };
  const note = (set: Set<string>, request: IncomingMessage): void => {
    if (request.headers.authorization !== undefined) set.add(request.headers.authorization);
  };
  const store = await listen(servers, (request, response) => {
    note(tokens.store, request);
    void sendBytes(hub, decodeURIComponent((request.url as string).slice(1)), files, request, response);
  });
  const main = await listen(servers, (request, response) => {
    note(tokens.hub, request);
    if (hub.faults.silent) return;
    if (hub.faults.status !== undefined) {
      response.writeHead(hub.faults.status, { 'content-type': 'application/json' });
      response.end('{"error":"no"}');
      return;
    }
    answer(repo, files, store, request.url as string, response, hub.faults);
  });
  hub.endpoint = main;
  hub.close = async () => {
    for (const server of servers) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  };
  return hub;
}

async function listen(
  servers: Server[],
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(handler);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Info and tree of the repository, and `resolve`, which sends on to the store as the hub does for large files. */
function answer(
  repo: string,
  files: Readonly<Record<string, Buffer>>,
  store: string,
  url: string,
  response: ServerResponse,
  { listedSum }: Faults,
): void {
  const json = (value: unknown): void => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(value));
  };
  const api = repo.startsWith('datasets/') ? `/api/${repo}` : `/api/models/${repo}`;
  if (url.startsWith(`${api}/revision/`)) json({ _id: '1', id: repo, sha: COMMIT, private: false });
  else if (url.startsWith(`${api}/tree/${COMMIT}`))
    json(Object.entries(files).map((file) => treeEntry(file, listedSum)));
  else {
    const path = decodeURIComponent(url.replace(/\?.*$/, '')).replace(
      new RegExp(`^/${repo}/resolve/[^/]+/`),
      '',
    );
    const bytes = files[path];
    if (!bytes) {
      response.writeHead(404, { 'x-error-code': 'EntryNotFound' });
      response.end();
      return;
    }
    response.writeHead(302, {
      location: `${store}/${encodeURIComponent(path)}`,
      'x-repo-commit': COMMIT,
      'x-linked-size': String(bytes.length),
      'x-linked-etag': `"${sha256(bytes)}"`,
    });
    response.end();
  }
}

function treeEntry([path, bytes]: [string, Buffer], listedSum = sha256(bytes)): unknown {
  const entry = { type: 'file', path, size: bytes.length, oid: gitSha1(bytes) };
  if (bytes.length <= 1024) return entry;
  return { ...entry, lfs: { oid: listedSum, size: bytes.length, pointerSize: 130 } };
}

async function sendBytes(
  hub: { faults: Faults; transfers: HubServer['transfers'] },
  path: string,
  files: Readonly<Record<string, Buffer>>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const bytes = hub.faults.replaced?.[path] ?? (files[path] as Buffer);
  const range = request.headers.range ?? null;
  const asked = /^bytes=(\d+)-(\d*)$/.exec(range ?? '');
  const probe = range === 'bytes=0-0';
  const start = asked && (probe || !hub.faults.ignoreRange) ? Number(asked[1]) : 0;
  const end = probe ? 1 : bytes.length;
  if (start >= bytes.length && bytes.length > 0) {
    response.writeHead(416, { 'content-range': `bytes */${bytes.length}` });
    response.end();
    return;
  }
  const partial = probe || (asked !== null && !hub.faults.ignoreRange);
  response.writeHead(partial ? 206 : 200, {
    etag: `"${sha256(bytes)}"`,
    'content-length': end - start,
    ...(partial ? { 'content-range': `bytes ${start}-${end - 1}/${bytes.length}` } : {}),
  });
  if (probe) {
    response.end(bytes.subarray(0, 1));
    return;
  }
  const transfer = { path, range, bytesSent: 0 };
  hub.transfers.push(transfer);
  const cut = hub.faults.cuts?.shift() ?? Number.POSITIVE_INFINITY;
  for (let at = start; at < end; at += 65_536) {
    const part = bytes.subarray(at, Math.min(end, at + 65_536));
    if (transfer.bytesSent + part.length > cut || response.destroyed) {
      response.destroy();
      return;
    }
    await new Promise<void>((resolve) => response.write(part, () => resolve()));
    transfer.bytesSent += part.length;
    if (hub.faults.slowMs !== undefined)
      await new Promise((resolve) => setTimeout(resolve, hub.faults.slowMs));
  }
  response.end();
}
