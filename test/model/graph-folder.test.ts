import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildDecoderGraphs } from '../../src/model/decoder-graphs.js';
import type { DecoderWeights, EngineGraphs } from '../../src/model/index.js';
import { createWeightsFile } from '../../src/model/weights-file.js';
import { sha256File } from '../../src/util/digest.js';
import { fixture, readJson } from '../support/fixtures.js';
import { modelWeights } from '../support/model-weights.js';
import { maxDifference, storedRows } from './support/fixtures.js';
import { openSteps, temporaryFolder } from './support/step-runner.js';

/** No process has this id: it is above the largest that Linux gives out. */
const DEAD_PID = 2 ** 22 + 1;

const build = (
  folder: string,
  sourceDigest = 'one',
  precision: 'fp32' | 'q8' = 'fp32',
): Promise<EngineGraphs> =>
  buildDecoderGraphs({ weights: modelWeights('tiny-llama'), precision, folder, sourceDigest });

async function expectRight(graphs: EngineGraphs): Promise<void> {
  const steps = await openSteps(graphs);
  const { tokenIds } = readJson('forward', 'tiny-llama.json').sequences[0];
  const { logits } = await steps.step([tokenIds]);
  expect(maxDifference(logits, storedRows('forward', 'tiny-llama.safetensors')('logits.0'))).toBeLessThan(
    2e-4,
  );
  steps.close();
}

describe('weights file', () => {
  test('tensors start on pages, hold their bytes, and are listed', async () => {
    const path = join(temporaryFolder(), 'weights.bin');
    const writer = await createWeightsFile(path);
    await writer.add('a', 'float32', [3], Float32Array.of(1, 2, 3));
    await writer.add('b', 'uint8', [2, 2], Uint8Array.of(9, 8, 7, 6));
    writer.alias('c', 'b', [4]);
    const file = await writer.finish();
    const bytes = readFileSync(path);
    const { a, b, c } = file.tensors as Record<'a' | 'b' | 'c', (typeof file.tensors)[string]>;
    expect([a.byteOffset % 4096, b.byteOffset % 4096]).toEqual([0, 0]);
    expect(bytes.readFloatLE(a.byteOffset + 8)).toBe(3);
    expect([...bytes.subarray(b.byteOffset, b.byteOffset + b.byteLength)]).toEqual([9, 8, 7, 6]);
    expect(c).toEqual({ ...b, shape: [4] });
    expect(file.byteLength).toBe(bytes.length);
    expect(file.sha256).toBe(await sha256File(path));
  });

  test('an aborted file leaves nothing', async () => {
    const folder = temporaryFolder();
    const writer = await createWeightsFile(join(folder, 'weights.bin'));
    await writer.add('a', 'float32', [1], Float32Array.of(1));
    await writer.abort();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('what a killed writer left is removed, what a running one writes is not', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'weights.bin');
    const [dead, alive, other] = [
      `weights.bin.${DEAD_PID}-0123abcd.tmp`,
      `weights.bin.${process.pid}-0123abcd.tmp`,
      'weights.bin.notes',
    ];
    for (const name of [dead, alive, other]) writeFileSync(join(folder, name), 'x');
    await (await createWeightsFile(path)).finish();
    expect(readdirSync(folder).sort()).toEqual(['weights.bin', alive, other].sort());
  });
});

describe('folder', () => {
  test('a second call finds the graphs of the first, another source builds anew', async () => {
    const folder = temporaryFolder();
    const first = await build(folder);
    const written = statSync(first.weightsFile).mtimeMs;
    expect(await build(folder)).toEqual(first);
    expect(statSync(first.weightsFile).mtimeMs).toBe(written);
    await build(folder, 'two');
    expect(statSync(first.weightsFile).mtimeMs).toBeGreaterThan(written);
  });

  test('precisions live side by side', async () => {
    const folder = temporaryFolder();
    const [exact, blocks] = [await build(folder), await build(folder, 'one', 'q8')];
    expect(exact.digest).not.toBe(blocks.digest);
    expect(await build(folder)).toEqual(exact);
  });

  test.each([
    ['cut weights', (graphs: EngineGraphs) => truncateSync(graphs.weightsFile, 100)],
    [
      'a broken manifest',
      (_: EngineGraphs, folder: string) => writeFileSync(join(folder, 'graphs-fp32.json'), '{'),
    ],
  ])('%s are built again', async (_, damage) => {
    const folder = temporaryFolder();
    const graphs = await build(folder);
    damage(graphs, folder);
    await expectRight(await build(folder));
  });

  test('a build that fails takes the older set with it: its files may be replaced already', async () => {
    const folder = temporaryFolder();
    await build(folder);
    const failing: DecoderWeights = {
      ...modelWeights('tiny-llama'),
      part: () => {
        throw new Error('the disk is gone');
      },
    };
    const options = { weights: failing, precision: 'fp32', folder, sourceDigest: 'two' } as const;
    await expect(buildDecoderGraphs(options)).rejects.toThrow('the disk is gone');
    expect(readdirSync(folder)).not.toContain('graphs-fp32.json');
    await expectRight(await build(folder));
  });

  test('progress counts up to its total', async () => {
    const seen: number[] = [];
    await buildDecoderGraphs({
      weights: modelWeights('tiny-llama'),
      precision: 'q8',
      folder: temporaryFolder(),
      sourceDigest: 'one',
      onProgress: ({ done, total }) => seen.push(done / total!),
    });
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    expect([seen[0], seen.at(-1)]).toEqual([0, 1]);
  });
});

test('builds killed at any moment leave a folder in which the next one succeeds', async () => {
  const folder = temporaryFolder();
  const dist = (...path: string[]) => pathToFileURL(join(__dirname, '..', '..', 'dist', ...path)).href;
  const program = `
    import { readFileSync } from 'node:fs';
    import { buildDecoderGraphs } from '${dist('model', 'decoder-graphs.js')}';
    import { decoderWeights, describeDecoder } from '${dist('model', 'index.js')}';
    import { openWeights } from '${dist('weights', 'index.js')}';
    const source = openWeights(${JSON.stringify(fixture('models', 'tiny-llama'))});
    const configJson = JSON.parse(readFileSync(${JSON.stringify(fixture('models', 'tiny-llama', 'config.json'))}, 'utf8'));
    const weights = decoderWeights(describeDecoder({ configJson, tensors: source.tensors }), source);
    console.log('started');
    for (let round = 0; ; round++)
      await buildDecoderGraphs({ weights, precision: 'fp32', folder: ${JSON.stringify(folder)}, sourceDigest: String(round) });
  `;
  for (const delayMs of [0, 7, 31]) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'exit');
    await once(child.stdout, 'data');
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    child.kill('SIGKILL');
    expect((await ended)[1]).toBe('SIGKILL');
    await expectRight(await build(folder, `after ${delayMs}`));
    expect(readdirSync(folder).filter((name) => name.startsWith('weights-fp32.bin.'))).toEqual([]);
  }
});
