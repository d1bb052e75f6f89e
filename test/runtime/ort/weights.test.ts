import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { FileFormatError, NotFoundError, RuntimeError } from '../../../src/errors.js';
import { allocate, openRuntime } from '../../../src/runtime/index.js';
import type { RuntimeKind } from '../../../src/runtime/runtime.js';
import type { WeightTensor } from '../../../src/runtime/session.js';
import { FLOAT32, UINT8, writeGraph } from '../support/onnx-file.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-weights-'));
afterAll(() => rmSync(folder, { recursive: true }));

const SIZE = 2048;
const BLOCK = 32;
const values = new Uint8Array(SIZE * SIZE).map((_, at) => (at * 31) % 251);
const scales = new Float32Array((SIZE * SIZE) / BLOCK).map((_, at) => ((at % 17) - 8) / 1000);
const file = join(folder, 'weights.bin');
writeFileSync(file, Buffer.concat([values, Buffer.from(scales.buffer)]));
const tensors: Record<string, WeightTensor> = {
  'w.values': { type: 'uint8', shape: [SIZE, SIZE / BLOCK, BLOCK], byteOffset: 0 },
  'w.scales': { type: 'float32', shape: [(SIZE * SIZE) / BLOCK], byteOffset: values.length },
};

/** y = x W in 8-bit blocks; the second graph adds another input, as one with an adapter would. */
const graphs = [false, true].map((plus) =>
  writeGraph(join(folder, plus ? 'plus.onnx' : 'plain.onnx'), {
    inputs: { x: [FLOAT32, ['B', SIZE]], ...(plus ? { a: [FLOAT32, ['B', SIZE]] } : {}) },
    outputs: { y: [FLOAT32, ['B', SIZE]] },
    external: {
      'w.values': {
        type: UINT8,
        shape: tensors['w.values']!.shape,
        file: 'weights.bin',
        byteOffset: 0,
        byteLength: values.length,
      },
      'w.scales': {
        type: FLOAT32,
        shape: [(SIZE * SIZE) / BLOCK],
        file: 'weights.bin',
        byteOffset: values.length,
        byteLength: scales.byteLength,
      },
    },
    nodes: [
      {
        op: 'MatMulNBits',
        domain: 'com.microsoft',
        inputs: ['x', 'w.values', 'w.scales'],
        outputs: [plus ? 'h' : 'y'],
        attributes: { K: SIZE, N: SIZE, bits: 8, block_size: BLOCK, accuracy_level: 4 },
      },
      ...(plus ? [{ op: 'Add', inputs: ['h', 'a'], outputs: ['y'] }] : []),
    ],
  }),
) as [string, string];

async function run(kind: RuntimeKind, shared: boolean): Promise<number[]> {
  const runtime = await openRuntime(kind);
  const weights = shared ? runtime.openWeights(file, tensors) : undefined;
  const sessions = await Promise.all(
    graphs.map((graph) => runtime.openSession(graph, { threads: 1, ...(weights ? { weights } : {}) })),
  );
  // They live until the last session is closed.
  weights?.close();
  const x = {
    type: 'float32',
    shape: [1, SIZE],
    data: new Float32Array(SIZE).map((_, at) => Math.sin(at)),
  } as const;
  const results: number[] = [];
  for (const session of sessions) {
    const binding = session.createBinding();
    const y = allocate('float32', [1, SIZE]);
    for (const { name } of session.inputs)
      binding.bindInput(name, name === 'x' ? x : allocate('float32', [1, SIZE]));
    binding.bindOutput('y', y);
    await binding.run();
    results.push(...(y.data as Float32Array));
    session.close();
  }
  return results;
}

test.each<RuntimeKind>(['c-api', 'binding'])('sharing changes no result: %s', async (kind) => {
  const [plain, shared] = [await run(kind, false), await run(kind, true)];
  expect(shared).toEqual(plain);
  expect(new Set(plain).size).toBeGreaterThan(SIZE / 2);
});

test('packed weights exist once', () => {
  const script = `
    import { readFileSync } from 'node:fs';
    import { openRuntime } from '${pathToFileURL(join(__dirname, '../../../dist/runtime/index.js'))}';
    const anonymous = () => Number(/RssAnon:\\s*(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024;
    const runtime = await openRuntime('c-api');
    const [plain, plus] = ${JSON.stringify(graphs)};
    const growth = async (weights) => {
      const options = { threads: 1, weights };
      await runtime.openSession(plain, options);
      const before = anonymous();
      const kept = [];
      for (let i = 0; i < 24; i++) kept.push(await runtime.openSession(plus, options));
      return anonymous() - before;
    };
    const shared = await growth(runtime.openWeights(${JSON.stringify(file)}, ${JSON.stringify(tensors)}));
    console.log(JSON.stringify({ shared, alone: await growth() }));
  `;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
    encoding: 'utf8',
  });
  const { shared, alone } = JSON.parse(output);
  // 24 times 4 MiB and more, against the sessions' own structures and what malloc keeps.
  expect(alone).toBeGreaterThan(96);
  expect(shared).toBeLessThan(48);
});

test('what does not fit is refused', async () => {
  const runtime = await openRuntime('c-api');
  expect(() => runtime.openWeights(join(folder, 'none.bin'), tensors)).toThrow(NotFoundError);
  const late = { w: { type: 'float32', shape: [SIZE, SIZE], byteOffset: 4096 } } as const;
  expect(() => runtime.openWeights(file, late)).toThrow(FileFormatError);
  expect(() => runtime.openWeights(file, late)).toThrow(/weights\.bin: tensor "w" spans bytes 4096 to/);
  const closed = runtime.openWeights(file, tensors);
  closed.close();
  closed.close();
  await expect(runtime.openSession(graphs[0], { threads: 1, weights: closed })).rejects.toThrow(RuntimeError);
  await expect(runtime.openSession(graphs[0], { threads: 1, weights: closed })).rejects.toThrow('closed');
});

test('a tensor of another shape than the graph says is refused', async () => {
  const runtime = await openRuntime('c-api');
  const weights = runtime.openWeights(file, {
    ...tensors,
    'w.values': { type: 'uint8', shape: [SIZE / 2, SIZE / BLOCK, BLOCK], byteOffset: 0 },
  });
  await expect(runtime.openSession(graphs[0], { threads: 1, weights })).rejects.toThrow(RuntimeError);
  weights.close();
});
