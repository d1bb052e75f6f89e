// A mirror of Wikimedia's dumps: dated folders, lists of sums, ranges; it can be told to fail.

import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface DumpMirror {
  readonly address: string;
  /** Requests for bytes, in order. */
  readonly transfers: { path: string; range: string | null; bytesSent: number }[];
  readonly faults: MirrorFaults;
  /** Publishes a dump; it is the latest from now on. */
  publish(date: string, dump: Buffer, sum?: string): void;
  close(): Promise<void>;
}

export interface MirrorFaults {
  /** Cuts the connection after this many bytes of each of the next transfers. */
  cuts?: number[];
  /** Pause before each part of 256 bytes. */
  slowMs?: number;
  status?: number;
  ignoreRange?: boolean;
}

export const sha1 = (bytes: Buffer): string => createHash('sha1').update(bytes).digest('hex');

export async function startDumpMirror(wiki = 'simplewiki'): Promise<DumpMirror> {
  const files = new Map<string, Buffer>();
  const transfers: DumpMirror['transfers'] = [];
  const faults: MirrorFaults = {};
  const server = createServer((request, response) => void answer(request, response));
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url as string;
    const bytes = files.get(path);
    const status = faults.status ?? (bytes === undefined ? 404 : 0);
    if (status !== 0 || bytes === undefined) {
      response.writeHead(status).end();
      return;
    }
    const asked = faults.ignoreRange ? null : /^bytes=(\d+)-$/.exec(request.headers.range ?? '');
    const start = Number(asked?.[1] ?? 0);
    response.writeHead(asked ? 206 : 200, {
      'content-length': bytes.length - start,
      ...(asked ? { 'content-range': `bytes ${start}-${bytes.length - 1}/${bytes.length}` } : {}),
    });
    if (request.method === 'HEAD' || path.endsWith('.txt')) {
      response.end(request.method === 'HEAD' ? undefined : bytes);
      return;
    }
    const transfer = { path, range: request.headers.range ?? null, bytesSent: 0 };
    transfers.push(transfer);
    const end = Math.min(bytes.length, start + (faults.cuts?.shift() ?? Number.POSITIVE_INFINITY));
    for (let at = start; at < end && !response.destroyed; at += 256) {
      const part = bytes.subarray(at, Math.min(end, at + 256));
      await new Promise<void>((resolve) => response.write(part, () => resolve()));
      transfer.bytesSent += part.length;
      if (faults.slowMs !== undefined) await new Promise((resolve) => setTimeout(resolve, faults.slowMs));
    }
    if (end < bytes.length) response.destroy();
    else response.end();
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    transfers,
    faults,
    publish(date, dump, sum = sha1(dump)) {
      const name = `${wiki}-${date}-pages-articles-multistream.xml.bz2`;
      files.set(`/${wiki}/${date}/${name}`, dump);
      const list = Buffer.from(
        `${'0'.repeat(40)}  ${wiki}-${date}-pages-articles.xml.bz2\n${sum}  ${name}\n${'1'.repeat(40)}  ${wiki}-${date}-pages-articles-multistream-index.txt.bz2\n`,
      );
      files.set(`/${wiki}/${date}/${wiki}-${date}-sha1sums.txt`, list);
      files.set(`/${wiki}/latest/${wiki}-latest-sha1sums.txt`, list);
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
