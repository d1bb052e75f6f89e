// The store's worker, which ends at once when it is told to over a channel; also in the middle of its work.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BroadcastChannel } from 'node:worker_threads';

const channel = new BroadcastChannel('dying-worker');
channel.onmessage = () => process.exit(1);
channel.unref();
await import(
  pathToFileURL(resolve(import.meta.dirname, '..', '..', '..', 'dist', 'trajectory', 'store', 'worker.js'))
    .href
);
