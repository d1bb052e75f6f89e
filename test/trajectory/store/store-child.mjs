// A process with a store of its own, for tests that kill it or put faults under it. Argument: the database file.

import { resolve } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';

const dist = pathToFileURL(resolve(import.meta.dirname, '..', '..', '..', 'dist', 'trajectory', 'index.js'));
const { openTrajectoryStore } = await import(dist.href);
const store = openTrajectoryStore({ storage: { kind: 'sqlite', path: process.argv[2] } });
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();

process.on('message', async ({ id, kind, record, notes, input }) => {
  const reply = (answer) => process.send({ id, ...answer });
  try {
    if (kind === 'put') reply({ ok: await store.put(record, notes) });
    else if (kind === 'feedback') reply({ ok: (await store.addFeedback(input)).entry.id });
    else if (kind === 'health') reply({ ok: store.health() });
    else if (kind === 'delay') {
      reply({ ok: delay.max / 1e6 });
      delay.reset();
    } else {
      await store.close();
      reply({ ok: true });
      process.exit(0);
    }
  } catch (error) {
    reply({ error: String(error) });
  }
});
process.send({ id: 'ready', ok: true });
