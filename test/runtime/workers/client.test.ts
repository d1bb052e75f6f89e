import { join } from 'node:path';
import {
  CancelledError,
  InvalidInputError,
  OverloadedError,
  RuntimeError,
  UnavailableError,
} from '../../../src/errors.js';
import { type Method, startWorker, type WorkerClient, type WorkerState } from '../../../src/runtime/index.js';
import type { WorkerOptions } from '../../../src/runtime/workers/client.js';
import { eventually } from '../../support/eventually.js';

interface Echo {
  echo: Method<unknown, unknown>;
  where: Method<void, { data: unknown }>;
  buffer: Method<number, { bytes: Uint8Array }>;
  length: Method<Uint8Array, number>;
  count: Method<{ to: number; everyMs: number }, string, number>;
  forever: Method;
  fail: Method<{ kind: string }, void>;
  uncloneable: Method;
  broadcast: Method<string>;
  exit: Method<number>;
  crash: Method;
  exhaust: Method;
  block: Method<number>;
  missing: Method;
}

const ENTRY = join(__dirname, '..', 'support', 'echo-worker.mjs');
const open: WorkerClient<Echo>[] = [];
async function start(data?: unknown, options?: WorkerOptions<string>): Promise<WorkerClient<Echo>> {
  const client = await startWorker<Echo, string>(ENTRY, data, options);
  open.push(client);
  return client;
}
afterEach(async () => {
  for (const client of open.splice(0)) await client.close();
});

test('calls run side by side and answers find their callers', async () => {
  const client = await start({ seed: 5 });
  const slow = client.call('count', { to: 3, everyMs: 10 });
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => client.call('echo', { i })));
  expect(answers).toEqual(Array.from({ length: 20 }, (_, i) => ({ i })));
  expect(await client.call('where', undefined)).toMatchObject({ data: { seed: 5 } });
  expect(await slow).toBe('counted');
});

test('arrays move both ways', async () => {
  const client = await start();
  const { bytes } = await client.call('buffer', 1000);
  expect([bytes.length, bytes[999]]).toEqual([1000, 7]);
  expect(await client.call('length', bytes, { transfer: [bytes.buffer as ArrayBuffer] })).toBe(1000);
  expect(bytes.length).toBe(0);
});

test('events of two streams keep apart and in order', async () => {
  const client = await start();
  const read = async (to: number) => {
    const seen: number[] = [];
    const stream = client.stream('count', { to, everyMs: 1 });
    for (;;) {
      const next = await stream.next();
      if (next.done) return { seen, result: next.value };
      seen.push(next.value);
    }
  };
  expect(await Promise.all([read(5), read(12)])).toEqual(
    [5, 12].map((to) => ({ seen: Array.from({ length: to }, (_, i) => i), result: 'counted' })),
  );
});

test('a signal stops a call; leaving a stream stops it too', async () => {
  const client = await start();
  const controller = new AbortController();
  const stopped = client.call('count', { to: 1e9, everyMs: 1 }, { signal: controller.signal });
  const other = client.call('count', { to: 20, everyMs: 1 });
  const thrown = client.call('forever', undefined, { signal: controller.signal });
  controller.abort();
  expect(await stopped).toMatch(/^stopped/);
  await expect(thrown).rejects.toThrow(CancelledError);
  expect(await other).toBe('counted');
  await expect(client.call('echo', 1, { signal: controller.signal })).rejects.toThrow(CancelledError);

  let seen = 0;
  for await (const _ of client.stream('count', { to: 1e9, everyMs: 1 })) if (++seen === 3) break;
  expect(seen).toBe(3);
  const stream = client.stream('count', { to: 1e9, everyMs: 1 }, { signal: AbortSignal.timeout(30) });
  let end = await stream.next();
  while (!end.done) end = await stream.next();
  expect(end.value).toMatch(/^stopped/);
});

test('errors keep class, name, code, fields and cause', async () => {
  const client = await start();
  const failure = (kind: string) =>
    client.call('fail', { kind }).then(
      () => null,
      (error) => error,
    );
  const input = await failure('input');
  expect(input).toBeInstanceOf(InvalidInputError);
  expect(input).toMatchObject({
    name: 'InvalidInputError',
    code: 'invalid_input',
    param: 'messages[0].n',
    details: { got: 'x' },
    message: 'expected a number, got "x"',
  });
  expect(input.stack).toContain('echo-worker.mjs');
  expect(await failure('overloaded')).toBeInstanceOf(OverloadedError);
  expect(await failure('overloaded')).toMatchObject({ code: 'overloaded', retryAfterMs: 1500 });
  const outer = await failure('cause');
  expect(outer).toBeInstanceOf(RuntimeError);
  expect(outer.cause).toBeInstanceOf(TypeError);
  expect(outer.cause.message).toBe('inner');
  expect(await failure('plain')).toMatchObject({
    name: 'Error',
    message: 'plain',
    code: 'ENOENT',
    errno: -2,
  });
  expect(await failure('string')).toMatchObject({ message: 'just text' });
  await expect(client.call('uncloneable', undefined)).rejects.toThrow(/could not be cloned/);
  await expect(client.call('echo', () => {})).rejects.toThrow(/could not be cloned/);
  await expect(client.call('missing', undefined)).rejects.toThrow('no method "missing"');
  await expect(client.call('toString' as 'missing', undefined)).rejects.toThrow('no method "toString"');
});

test('a setup that fails says why; a missing entry says what to do', async () => {
  const failed = await start({ failSetup: true }).catch((error) => error);
  expect(failed).toBeInstanceOf(InvalidInputError);
  expect(failed).toMatchObject({ param: 'failSetup' });
  await expect(start({ exitSetup: true })).rejects.toThrow(/ended: exit code 3/);
  await expect(startWorker('engine/no-such-worker', null)).rejects.toThrow(
    /no-such-worker\.js.*npm run build/,
  );
});

test('a worker that dies fails its calls, says so, and comes back', async () => {
  const states: WorkerState[] = [];
  const client = await start(undefined, { backOffMs: 30, onState: (state) => states.push(state) });
  const waiting = [client.call('forever', undefined), client.call('count', { to: 1e9, everyMs: 5 })];
  const failures = Promise.allSettled([...waiting, client.call('crash', undefined)]);
  for (const failure of await failures) {
    expect(failure.status).toBe('rejected');
    const { reason } = failure as PromiseRejectedResult;
    expect(reason).toBeInstanceOf(UnavailableError);
    expect(reason.message).toContain('boom');
  }
  expect(client.state).toBe('restarting');
  await expect(client.call('echo', 1)).rejects.toThrow(/restarting.*boom/);
  await eventually(() => client.state === 'ready');
  expect(await client.call('echo', 'back')).toBe('back');
  expect(states).toEqual(['restarting', 'ready']);
});

test('a worker that keeps dying is left alone after a few tries', async () => {
  const states: WorkerState[] = [];
  const client = await start(
    { dieAfterMs: 1 },
    { backOffMs: 1, maxRestarts: 2, onState: (state) => states.push(state) },
  );
  await eventually(() => client.state === 'failed');
  await expect(client.call('echo', 1)).rejects.toThrow(/failed.*exit code 4/);
  expect(states).toEqual(['restarting', 'ready', 'restarting', 'ready', 'failed']);
});

test('a worker out of memory dies alone', async () => {
  const client = await start(undefined, { maxHeapMebibytes: 32, restart: false });
  await expect(client.call('exhaust', undefined)).rejects.toThrow(/memory/);
  expect(client.state).toBe('failed');
});

test('broadcasts arrive, also the last one', async () => {
  const heard: string[] = [];
  const client = await start(undefined, { onBroadcast: (event) => heard.push(event) });
  await client.call('broadcast', 'one');
  await client.close();
  expect(heard).toEqual(['one', 'closing']);
});

test('close ends running calls and waits for the worker', async () => {
  const client = await start({ slowCloseMs: 20 });
  const counting = client.call('count', { to: 1e9, everyMs: 1 });
  const forever = client.call('forever', undefined).catch((error) => error);
  await client.close();
  expect(client.state).toBe('closed');
  expect(await counting).toBe('stopped: the worker is closing');
  expect(await forever).toBeInstanceOf(CancelledError);
  await expect(client.call('echo', 1)).rejects.toThrow(UnavailableError);
  await client.close();
});

test('a worker that does not listen is stopped', async () => {
  const client = await start(undefined, { closeTimeoutMs: 50 });
  const blocked = client.call('block', 60_000).catch((error) => error);
  await client.close();
  expect(await blocked).toBeInstanceOf(UnavailableError);
});

test('close while restarting', async () => {
  const client = await start(undefined, { backOffMs: 60_000 });
  await client.call('exit', 1).catch(() => {});
  expect(client.state).toBe('restarting');
  await client.close();
  expect(client.state).toBe('closed');
});
