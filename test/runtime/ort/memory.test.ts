import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { FLOAT32, writeGraph } from '../support/onnx-file.js';

const root = join(__dirname, '..', '..', '..');
const folder = mkdtempSync(join(tmpdir(), 'searchloop-memory-'));
afterAll(() => rmSync(folder, { recursive: true }));

// 1 MiB of weights, so that one lost session is seen.
const graph = writeGraph(join(folder, 'weights.onnx'), {
  inputs: { x: [FLOAT32, ['B', 512]] },
  outputs: { y: [FLOAT32, ['B', 512]] },
  constants: { w: [[512, 512], new Float32Array(512 * 512).fill(1 / 512)] },
  nodes: [{ op: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] }],
});

/** Runs a script in a process of its own, so that memory is that of the script alone. */
function inProcess(script: string): unknown {
  const prelude = `
    import { allocate, openRuntime } from '${pathToFileURL(join(root, 'dist/runtime/index.js'))}';
    const graph = ${JSON.stringify(graph)};
    const runtime = await openRuntime('c-api');
    const open = () => runtime.openSession(graph, { threads: 1 });
    const mebibytes = () => { gc(); return process.memoryUsage.rss() / 2 ** 20; };
  `;
  const output = execFileSync(
    process.execPath,
    ['--expose-gc', '--input-type=module', '--eval', `${prelude}${script}`],
    { encoding: 'utf8' },
  );
  return JSON.parse(output.trim());
}

test('a thousand sessions and bindings leave nothing behind', () => {
  const growth = inProcess(`
    async function round() {
      const session = await open();
      const binding = session.createBinding();
      for (const rows of [1, 2]) {
        binding.bindInput('x', allocate('float32', [rows, 512]));
        binding.bindOutput('y', allocate('float32', [rows, 512]));
        await binding.run();
      }
      // Half of them leave the binding to the session.
      if (Math.random() < 0.5) binding.close();
      session.close();
    }
    for (let i = 0; i < 50; i++) await round();
    const before = mebibytes();
    for (let i = 0; i < 1000; i++) await round();
    console.log(mebibytes() - before);
  `);
  expect(growth).toBeLessThan(48);
});

test('failures leave nothing behind', () => {
  const growth = inProcess(`
    import { writeFileSync } from 'node:fs';
    const corrupt = ${JSON.stringify(join(folder, 'corrupt.onnx'))};
    writeFileSync(corrupt, 'no graph');
    const session = await open();
    const binding = session.createBinding();
    async function round() {
      await runtime.openSession(corrupt, { threads: 1 }).then(() => process.exit(1), () => {});
      binding.bindInput('x', allocate('float32', [64, 511]));
      binding.bindOutput('y', allocate('float32', [64, 512]));
      await binding.run().then(() => process.exit(1), () => {});
      try { binding.bindInput('no', allocate('float32', [64, 512])); process.exit(1); } catch {}
    }
    for (let i = 0; i < 100; i++) await round();
    const before = mebibytes();
    for (let i = 0; i < 2000; i++) await round();
    console.log(mebibytes() - before);
  `);
  expect(growth).toBeLessThan(32);
});

test('bound arrays stay where they are, small ones too, and are freed after closing', () => {
  const { wrong, held, freed } = inProcess(`
    const session = await open();
    const binding = session.createBinding();
    // Nothing but the binding refers to these arrays.
    binding.bindInput('x', { type: 'float32', shape: [1, 512], data: new Float32Array(512).fill(1) });
    const y = allocate('float32', [1, 512]);
    binding.bindOutput('y', y);
    let wrong = 0;
    for (let i = 0; i < 300; i++) {
      const garbage = Array.from({ length: 200 }, () => new Float32Array(8).fill(i));
      if (i % 10 === 0) gc();
      y.data.fill(0);
      await binding.run();
      if (Math.abs(y.data[garbage.length] - 1) > 1e-5) wrong++;
    }
    let collected = 0;
    const registry = new FinalizationRegistry(() => collected++);
    (() => {
      const data = new Float32Array(512);
      registry.register(data, 0);
      binding.bindInput('x', { type: 'float32', shape: [1, 512], data });
    })();
    const settle = async () => { for (let i = 0; i < 5; i++) { gc(); await new Promise((r) => setTimeout(r, 5)); } };
    await settle();
    const held = collected;
    binding.close();
    await settle();
    console.log(JSON.stringify({ wrong, held, freed: collected }));
  `) as Record<string, number>;
  expect({ wrong, held, freed }).toEqual({ wrong: 0, held: 0, freed: 1 });
});
