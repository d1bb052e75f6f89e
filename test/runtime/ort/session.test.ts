import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NotFoundError, RuntimeError } from '../../../src/errors.js';
import { allocate, openRuntime } from '../../../src/runtime/index.js';
import type { RuntimeKind } from '../../../src/runtime/runtime.js';
import { FLOAT16, FLOAT32, INT64, UINT8, writeGraph } from '../support/onnx-file.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-runtime-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** y = x + x with rows named B. */
const double = writeGraph(join(folder, 'double.onnx'), {
  inputs: { x: [FLOAT32, ['B', 4]] },
  outputs: { y: [FLOAT32, ['B', 4]] },
  nodes: [{ op: 'Add', inputs: ['x', 'x'], outputs: ['y'] }],
});

describe.each<RuntimeKind>(['c-api', 'binding'])('%s', (kind) => {
  const open = async (file: string) => (await openRuntime(kind)).openSession(file, { threads: 1 });

  test('tells inputs and outputs', async () => {
    const session = await open(double);
    expect(session.inputs).toEqual([{ name: 'x', type: 'float32', shape: ['B', 4] }]);
    expect(session.outputs).toEqual([{ name: 'y', type: 'float32', shape: ['B', 4] }]);
    session.close();
  });

  test('runs again and again on bound arrays', async () => {
    const session = await open(double);
    const binding = session.createBinding();
    const x = { type: 'float32', shape: [1, 4], data: new Float32Array([1, 2, 3, 4]) } as const;
    const y = allocate('float32', [1, 4]);
    binding.bindInput('x', x);
    binding.bindOutput('y', y);
    await binding.run();
    expect([...y.data]).toEqual([2, 4, 6, 8]);
    x.data[0] = 10;
    await binding.run();
    expect(y.data[0]).toBe(20);
    session.close();
  });

  test('output may be the input: memory is updated in place', async () => {
    const session = await open(double);
    const binding = session.createBinding();
    const view = { type: 'float32', shape: [2, 4], data: new Float32Array(8).fill(1) } as const;
    binding.bindInput('x', view);
    binding.bindOutput('y', view);
    for (let run = 0; run < 3; run++) await binding.run();
    expect([...view.data]).toEqual(Array(8).fill(8));
    session.close();
  });

  test('views inside a larger buffer leave the rest alone', async () => {
    const session = await open(double);
    const pool = new Float32Array(32).fill(1);
    const binding = session.createBinding();
    binding.bindInput('x', { type: 'float32', shape: [1, 4], data: pool.subarray(8, 12) });
    // Longer than its shape: the tail is not touched.
    binding.bindOutput('y', { type: 'float32', shape: [1, 4], data: pool.subarray(8) });
    await binding.run();
    expect([...pool]).toEqual(Array.from({ length: 32 }, (_, i) => (i >= 8 && i < 12 ? 2 : 1)));
    session.close();
  });

  test('rebinding changes shape and memory', async () => {
    const session = await open(double);
    const binding = session.createBinding();
    for (const rows of [1, 3, 2]) {
      const data = new Float32Array(rows * 4).fill(rows);
      const y = allocate('float32', [rows, 4]);
      binding.bindInput('x', { type: 'float32', shape: [rows, 4], data });
      binding.bindOutput('y', y);
      await binding.run();
      expect([...y.data]).toEqual(Array(rows * 4).fill(2 * rows));
    }
    session.close();
  });

  test('int64 and float16', async () => {
    const file = writeGraph(join(folder, `types-${kind}.onnx`), {
      inputs: { i: [INT64, [2]], h: [FLOAT16, [2]] },
      outputs: { i2: [INT64, [2]], h2: [FLOAT16, [2]] },
      nodes: [
        { op: 'Add', inputs: ['i', 'i'], outputs: ['i2'] },
        { op: 'Neg', inputs: ['h'], outputs: ['h2'] },
      ],
    });
    const session = await open(file);
    const binding = session.createBinding();
    const [i2, h2] = [allocate('int64', [2]), allocate('float16', [2])];
    binding.bindInput('i', { type: 'int64', shape: [2], data: new BigInt64Array([1n << 40n, -3n]) });
    binding.bindInput('h', { type: 'float16', shape: [2], data: new Uint16Array([0x3c00, 0xc000]) });
    binding.bindOutput('i2', i2);
    binding.bindOutput('h2', h2);
    await binding.run();
    expect([...i2.data]).toEqual([1n << 41n, -6n]);
    expect([...h2.data]).toEqual([0xbc00, 0x4000]);
    session.close();
  });

  test('a missing file, a corrupt file and an unknown operator are one clear error each', async () => {
    await expect(open(join(folder, 'none.onnx'))).rejects.toThrow(NotFoundError);
    const corrupt = join(folder, 'corrupt.onnx');
    writeFileSync(corrupt, Buffer.from('this is no graph'));
    await expect(open(corrupt)).rejects.toThrow(/corrupt\.onnx.*onnxruntime: .*[Pp]rotobuf/);
    const unknown = writeGraph(join(folder, 'unknown.onnx'), {
      inputs: { x: [FLOAT32, [1]] },
      outputs: { y: [FLOAT32, [1]] },
      nodes: [{ op: 'Frobnicate', inputs: ['x'], outputs: ['y'] }],
    });
    const failure = open(unknown);
    await expect(failure).rejects.toThrow(RuntimeError);
    await expect(failure).rejects.toThrow(/Frobnicate/);
  });

  test('a wrong array is refused with its name', async () => {
    const session = await open(double);
    const binding = session.createBinding();
    const bind = (type: string, shape: number[], data: unknown) => () =>
      binding.bindInput('x', { type, shape, data } as never);
    expect(bind('float32', [1, 4], new Int32Array(4))).toThrow(
      '"x": float32 wants a Float32Array, got Int32Array',
    );
    expect(bind('float32', [1, 4], new Float32Array(3))).toThrow(
      '"x": shape [1,4] needs 4 elements, the array holds 3',
    );
    expect(bind('float32', [1, -4], new Float32Array(4))).toThrow('"x": [1,-4] is not a shape');
    expect(bind('double', [1, 4], new Float64Array(4))).toThrow('"double"');
    expect(() => binding.bindInput('z', allocate('float32', [1, 4]))).toThrow(
      'the graph has no input "z", only x',
    );
    expect(() => binding.bindOutput('x', allocate('float32', [1, 4]))).toThrow('no output "x", only y');
    // It still works.
    binding.bindInput('x', allocate('float32', [1, 4]));
    binding.bindOutput('y', allocate('float32', [1, 4]));
    await binding.run();
    session.close();
  });

  test('a Buffer is bytes like any Uint8Array', async () => {
    const file = writeGraph(join(folder, `bytes-${kind}.onnx`), {
      inputs: { x: [UINT8, [4]] },
      outputs: { y: [UINT8, [4]] },
      nodes: [{ op: 'BitwiseNot', inputs: ['x'], outputs: ['y'] }],
    });
    const session = await open(file);
    const binding = session.createBinding();
    const y = allocate('uint8', [4]);
    binding.bindInput('x', { type: 'uint8', shape: [4], data: Buffer.from([0, 1, 2, 255]) });
    binding.bindOutput('y', y);
    await binding.run();
    expect([...y.data]).toEqual([255, 254, 253, 0]);
    session.close();
  });

  test('tensors without elements', async () => {
    const session = await open(double);
    const binding = session.createBinding();
    binding.bindInput('x', allocate('float32', [0, 4]));
    binding.bindOutput('y', allocate('float32', [0, 4]));
    await binding.run();
    session.close();
  });

  test('memory that several threads share', async () => {
    const session = await open(double);
    const binding = session.createBinding();
    const shared = new Float32Array(new SharedArrayBuffer(32)).fill(5);
    binding.bindInput('x', { type: 'float32', shape: [1, 4], data: shared.subarray(0, 4) });
    binding.bindOutput('y', { type: 'float32', shape: [1, 4], data: shared.subarray(4) });
    await binding.run();
    expect([...shared]).toEqual([5, 5, 5, 5, 10, 10, 10, 10]);
    session.close();
  });

  test('a failed run says why and the binding works afterwards', async () => {
    const session = await open(double);
    const binding = session.createBinding();
    const y = allocate('float32', [1, 4]);
    binding.bindInput('x', allocate('float32', [1, 3]));
    binding.bindOutput('y', y);
    await expect(binding.run()).rejects.toThrow(/onnxruntime: .*x/s);
    binding.bindInput('x', { type: 'float32', shape: [1, 4], data: new Float32Array(4).fill(3) });
    await binding.run();
    expect([...y.data]).toEqual([6, 6, 6, 6]);
    session.close();
  });

  test('closed things refuse work and close twice in silence', async () => {
    const session = await open(double);
    const binding = session.createBinding();
    session.close();
    session.close();
    binding.close();
    await expect(binding.run()).rejects.toThrow('closed');
    expect(() => session.createBinding()).toThrow('closed');
  });
});

test('a run of the fallback whose binding is closed meanwhile says so', async () => {
  const session = await (await openRuntime('binding')).openSession(double, { threads: 1 });
  const binding = session.createBinding();
  binding.bindInput('x', allocate('float32', [1, 4]));
  binding.bindOutput('y', allocate('float32', [1, 4]));
  const running = binding.run();
  binding.close();
  await expect(running).rejects.toThrow('closed during its run');
  session.close();
});

test('an array whose buffer went away is refused before the run', async () => {
  const session = await (await openRuntime('c-api')).openSession(double, { threads: 1 });
  const binding = session.createBinding();
  const x = allocate('float32', [1, 4]);
  binding.bindInput('x', x);
  binding.bindOutput('y', allocate('float32', [1, 4]));
  await binding.run();
  structuredClone(x.data, { transfer: [x.data.buffer as ArrayBuffer] });
  await expect(binding.run()).rejects.toThrow('input:x: its buffer was moved');
  session.close();
});
