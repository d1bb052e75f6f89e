// The store's worker, which ends at once when it is told to over a channel; also in the middle of its work, or after a
// commit and before its reply.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BroadcastChannel, parentPort } from 'node:worker_threads';

const channel = new BroadcastChannel('dying-worker');
channel.onmessage = ({ data }) => {
  if (data === 'die') process.exit(1);
  parentPort.postMessage = () => process.exit(1);
  channel.postMessage('ready to die');
};
channel.unref();
await import(
  pathToFileURL(resolve(import.meta.dirname, '..', '..', '..', 'dist', 'trajectory', 'store', 'worker.js'))
    .href
);
