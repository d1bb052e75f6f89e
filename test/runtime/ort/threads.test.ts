import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CancelledError } from '../../../src/errors.js';
import { type Method, openRuntime, startWorker } from '../../../src/runtime/index.js';
import type { TerminateHandle } from '../../../src/runtime/session.js';
import { FLOAT32, writeGraph } from '../support/onnx-file.js';

interface Runner {
  run: Method<{ times: number; value: number }, [number, number]>;
  handle: Method<void, TerminateHandle>;
  javaScriptDenormal: Method<number, number>;
}

const ENTRY = join(__dirname, '..', 'support', 'session-worker.mjs');
const folder = mkdtempSync(join(tmpdir(), 'searchloop-threads-'));
afterAll(() => rmSync(folder, { recursive: true }));

const square = { x: [FLOAT32, ['N', 'N']] } as const;
const double = writeGraph(join(folder, 'double.onnx'), {
  inputs: square,
  outputs: { y: [FLOAT32, ['N', 'N']] },
  nodes: [{ op: 'Add', inputs: ['x', 'x'], outputs: ['y'] }],
});

/** Multiplies x with itself so often that a run takes long. */
const slow = writeGraph(join(folder, 'slow.onnx'), {
  inputs: square,
  outputs: { y: [FLOAT32, ['N', 'N']] },
  nodes: Array.from({ length: 2000 }, (_, at) => ({
    op: 'MatMul',
    inputs: [at === 0 ? 'x' : `t${at}`, 'x'],
    outputs: [at === 1999 ? 'y' : `t${at + 1}`],
  })),
});

const start = (data: object) => startWorker<Runner>(ENTRY, data, { restart: false });

test.each(['c-api', 'binding'])(
  'four workers, each with its own session, 200 runs at once: %s',
  async (kind) => {
    const workers = await Promise.all([1, 2, 3, 4].map(() => start({ graph: double, kind, size: 8 })));
    const runs = workers.flatMap((worker, value) =>
      Array.from({ length: 50 }, () => worker.call('run', { times: 4, value })),
    );
    const results = await Promise.all(runs);
    results.forEach((result, at) => {
      const value = 2 * Math.floor(at / 50);
      expect(result).toEqual([value, value]);
    });
    await Promise.all(workers.map((worker) => worker.close()));
  },
);

test('eight workers started together and closed, twenty rounds', async () => {
  for (let round = 0; round < 20; round++) {
    const workers = await Promise.all(Array.from({ length: 8 }, () => start({ graph: double, size: 2 })));
    const results = await Promise.all(
      workers.map((worker) => worker.call('run', { times: 1, value: round })),
    );
    expect(results).toEqual(Array(8).fill([2 * round, 2 * round]));
    await Promise.all(workers.map((worker) => worker.close()));
  }
}, 300_000);

test('a run is ended from another thread, and the binding lives on', async () => {
  const worker = await start({ graph: slow, size: 96 });
  const handle = await worker.call('handle', undefined);
  const failure = worker.call('run', { times: 1000, value: 0 }).catch((error) => error);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const runtime = await openRuntime();
  runtime.terminate(handle);
  const error = await failure;
  expect(error).toBeInstanceOf(CancelledError);
  expect(error.cause?.message).toMatch(/terminate/i);
  expect(await worker.call('run', { times: 1, value: 0 })).toEqual([0, 0]);
  // Without a run, the next one is refused; only that one.
  runtime.terminate(handle);
  await expect(worker.call('run', { times: 1, value: 0 })).rejects.toThrow('before it started');
  expect(await worker.call('run', { times: 1, value: 0 })).toEqual([0, 0]);
  await worker.close();
  // The run options are freed: nothing may happen.
  runtime.terminate(handle);
});

test('denormal numbers are flushed in every calling thread, and JavaScript keeps its own', async () => {
  const tiny = 1e-42;
  const workers = await Promise.all([1, 2].map(() => start({ graph: double, size: 64 })));
  for (const worker of workers) {
    expect(await worker.call('run', { times: 1, value: tiny })).toEqual([0, 0]);
    expect(await worker.call('javaScriptDenormal', 5e-324)).toBe(5e-324);
  }
  await Promise.all(workers.map((worker) => worker.close()));
});

test('runs on runners leave the calling thread free and go side by side', async () => {
  const runtime = await openRuntime();
  const sessions = await Promise.all([0, 1].map(() => runtime.openSession(double, { threads: 1 })));
  const runners = await Promise.all(sessions.map(() => runtime.startRunner()));
  const work = sessions.map(async (session, lane) => {
    const binding = session.createBinding();
    const [x, y] = [new Float32Array(16), new Float32Array(16)];
    binding.bindInput('x', { type: 'float32', shape: [4, 4], data: x });
    binding.bindOutput('y', { type: 'float32', shape: [4, 4], data: y });
    for (let value = 0; value < 50; value++) {
      x.fill(value + lane);
      await binding.run(runners[lane]);
      expect(y).toEqual(new Float32Array(16).fill(2 * (value + lane)));
    }
  });
  await Promise.all(work);
  for (const session of sessions) session.close();
  await Promise.all(runners.map((runner) => runner.close()));
});

test('a run on a runner is ended from the thread that started it; a closed runner refuses', async () => {
  const runtime = await openRuntime();
  const session = await runtime.openSession(slow, { threads: 1 });
  const runner = await runtime.startRunner();
  const binding = session.createBinding();
  const data = new Float32Array(96 * 96);
  binding.bindInput('x', { type: 'float32', shape: [96, 96], data });
  binding.bindOutput('y', { type: 'float32', shape: [96, 96], data: new Float32Array(96 * 96) });
  const ended = binding.run(runner).catch((error) => error);
  binding.terminate();
  expect(await ended).toBeInstanceOf(CancelledError);
  await binding.run(runner);
  await runner.close();
  await expect(binding.run(runner)).rejects.toThrow('closed');
  session.close();
});
