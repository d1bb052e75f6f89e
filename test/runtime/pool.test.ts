import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CancelledError, InvalidInputError, UnavailableError } from '../../src/errors.js';
import { startPool, type TaskPool } from '../../src/runtime/index.js';
import type { PoolOptions } from '../../src/runtime/pool.js';
import { FLOAT32, writeGraph } from './support/onnx-file.js';

type Task = { action: string; value?: number; to?: number; ms?: number; graph?: string };

const ENTRY = join(__dirname, 'support', 'pool-entry.mjs');
const folder = mkdtempSync(join(tmpdir(), 'searchloop-pool-'));
const open: TaskPool<Task, number, number>[] = [];
function start(options: Partial<PoolOptions> = {}) {
  const pool = startPool<Task, number, number>(ENTRY, { threads: 1, ...options });
  open.push(pool);
  return pool;
}
afterEach(async () => {
  for (const pool of open.splice(0)) await pool.close();
});
afterAll(() => rmSync(folder, { recursive: true }));

test('tasks run in turn, in as many threads as asked', async () => {
  const pool = start({ threads: 2 });
  const squares = await Promise.all([1, 2, 3, 4].map((value) => pool.run({ action: 'square', value })));
  expect(squares).toEqual([1, 4, 9, 16]);
  const threads = await Promise.all([1, 2].map(() => pool.run({ action: 'thread', ms: 50 })));
  expect(new Set(threads).size).toBe(2);
});

if (process.platform === 'linux')
  test('threads yield to everyone; the main thread keeps its priority', async () => {
    const own = getPriority();
    const pool = start();
    expect(await pool.run({ action: 'nice' })).toBe(19);
    expect(getPriority()).toBe(own);
    const eager = start({ niceness: 3 });
    expect(await eager.run({ action: 'nice' })).toBe(Math.max(own, 3));
  });

test('progress comes in order and before the result', async () => {
  const pool = start();
  const seen: number[] = [];
  expect(await pool.run({ action: 'count', to: 500 }, { onProgress: (n) => seen.push(n) })).toBe(500);
  expect(seen).toEqual(Array.from({ length: 500 }, (_, i) => i));
});

test('errors keep their class', async () => {
  const pool = start();
  const error = await pool.run({ action: 'fail' }).catch((failure) => failure);
  expect(error).toBeInstanceOf(InvalidInputError);
  expect(error.param).toBe('task.value');
});

test.each(['wait', 'spin'])('a cancelled task stops itself (%s); its thread lives on', async (action) => {
  const pool = start();
  const controller = new AbortController();
  let thread = -1;
  const failure = pool
    .run({ action }, { signal: controller.signal, onProgress: (id) => (thread = id) })
    .catch((error) => error);
  while (thread < 0) await new Promise((resolve) => setTimeout(resolve, 2));
  controller.abort();
  expect(await failure).toBeInstanceOf(CancelledError);
  expect(await pool.run({ action: 'thread', ms: 0 })).toBe(thread);
});

test('cancelling one task leaves the others alone; a waiting one never starts', async () => {
  const pool = start({ threads: 2 });
  const controller = new AbortController();
  const others = Promise.all([1, 2].map(() => pool.run({ action: 'thread', ms: 100 })));
  let started = false;
  const failure = pool
    .run({ action: 'wait' }, { signal: controller.signal, onProgress: () => (started = true) })
    .catch((error) => error);
  controller.abort();
  expect(await failure).toBeInstanceOf(CancelledError);
  await expect(pool.run({ action: 'square' }, { signal: controller.signal })).rejects.toThrow(CancelledError);
  expect(new Set(await others).size).toBe(2);
  expect(started).toBe(false);
});

test('a task that does not hear is stopped with its thread, and the thread is replaced', async () => {
  const pool = start({ cancelGraceMs: 30 });
  const controller = new AbortController();
  const failure = pool
    .run({ action: 'deaf' }, { signal: controller.signal, onProgress: () => controller.abort() })
    .catch((error) => error);
  expect(await failure).toBeInstanceOf(CancelledError);
  expect(await pool.run({ action: 'square', value: 3 })).toBe(9);
});

test('a thread out of memory fails its task only', async () => {
  const pool = start({ threads: 2, maxHeapMebibytes: 32 });
  const tasks = [
    pool.run({ action: 'exhaust' }).catch((error) => error),
    pool.run({ action: 'thread', ms: 300 }),
    ...[5, 6, 7].map((value) => pool.run({ action: 'square', value })),
  ];
  const [error, , ...squares] = await Promise.all(tasks);
  expect(error).toBeInstanceOf(UnavailableError);
  expect(error.message).toMatch(/memory/);
  expect(squares).toEqual([25, 36, 49]);
  await expect(pool.run({ action: 'exit' })).rejects.toThrow(/died: .*code: 5/);
  expect(await pool.run({ action: 'square', value: 2 })).toBe(4);
});

test('a thread that dies while idle is replaced', async () => {
  const pool = start();
  const thread = await pool.run({ action: 'crashLater' });
  // A task that comes while it dies fails with it.
  const next = () => pool.run({ action: 'thread', ms: 0 }).catch(() => thread);
  while ((await next()) === thread) await new Promise((resolve) => setTimeout(resolve, 20));
  expect(await next()).not.toBe(thread);
});

test('an entry that cannot be loaded is one error, not a hang', async () => {
  const broken = join(folder, 'broken.mjs');
  writeFileSync(broken, 'throw new Error("no entry");');
  const pool = startPool<Task, number>(broken, { threads: 1 });
  await expect(pool.run({ action: 'square' })).rejects.toThrow(/no entry/);
  await expect(pool.run({ action: 'square' })).rejects.toThrow(/no entry/);
  await pool.close();
  expect(() => startPool('training/no-such-task', { threads: 1 })).toThrow(/npm run build/);
});

test('closing fails what runs and what comes', async () => {
  const pool = start();
  const running = pool.run({ action: 'wait' }).catch((error) => error);
  const waiting = pool.run({ action: 'square', value: 1 }).catch((error) => error);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await pool.close();
  for (const error of [await running, await waiting]) {
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error.message).toMatch(/closed/);
  }
  await expect(pool.run({ action: 'square' })).rejects.toThrow(/closed/);
});

test('sessions of threads that end without closing them are freed', () => {
  const graph = writeGraph(join(folder, 'weights.onnx'), {
    inputs: { x: [FLOAT32, ['B', 512]] },
    outputs: { y: [FLOAT32, ['B', 512]] },
    // 8 MiB, twice: as read and as packed.
    constants: {
      w: [[512, 4096], new Float32Array(512 * 4096).fill(0.5)],
      v: [[4096, 512], new Float32Array(4096 * 512).fill(0.5)],
    },
    nodes: [
      { op: 'MatMul', inputs: ['x', 'w'], outputs: ['h'] },
      { op: 'MatMul', inputs: ['h', 'v'], outputs: ['y'] },
    ],
  });
  // In a process of its own: memory here is that of other tests, too.
  const script = `
    import { startPool } from '${pathToFileURL(join(__dirname, '../../dist/runtime/index.js'))}';
    const pool = startPool(${JSON.stringify(ENTRY)}, { threads: 1 });
    const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
    const leak = () => pool.run({ action: 'leak', graph: ${JSON.stringify(graph)} }).then(() => process.exit(1), pause);
    for (let i = 0; i < 3; i++) await leak();
    const before = process.memoryUsage.rss();
    for (let i = 0; i < 12; i++) await leak();
    console.log((process.memoryUsage.rss() - before) / 2 ** 20);
    await pool.close();
  `;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
    encoding: 'utf8',
  });
  expect(Number(output)).toBeLessThan(120);
});
