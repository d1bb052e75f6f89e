import type { Pooling } from '../../src/model/encoder-config.js';
import {
  buildEncoderGraph,
  describeEncoder,
  type EncoderGraph,
  encoderWeights,
} from '../../src/model/index.js';
import { openWeights } from '../../src/weights/index.js';
import { fixture, readJson } from '../support/fixtures.js';
import { embedRows, openEncoder } from './support/encoder-runner.js';
import { maxDifference, storedRows } from './support/fixtures.js';
import { temporaryFolder } from './support/step-runner.js';

const EMBEDDING = 1e-5;

const stored = storedRows('forward', 'tiny-bert.safetensors');
const ids: number[][] = readJson('forward', 'tiny-bert.json').cases.map(
  (item: { ids: number[] }) => item.ids,
);

async function build(pooling: Pooling): Promise<EncoderGraph> {
  const source = openWeights(fixture('models', 'tiny-bert'));
  const config = describeEncoder(readJson('models', 'tiny-bert', 'config.json'));
  const weights = encoderWeights(config, source);
  return buildEncoderGraph({ weights, pooling, folder: temporaryFolder(), sourceDigest: 'fixture' });
}

test.each(['mean', 'cls'] as const)(
  '%s pooling gives the stored vectors, alone and in one padded batch',
  async (pooling) => {
    const graph = await build({ pooling, normalise: true });
    const session = await openEncoder(graph);
    const alone: Float32Array[] = [];
    for (const row of ids) alone.push(...(await embedRows(session, graph.dimension, [row])));
    expect(maxDifference(alone, stored(pooling))).toBeLessThan(EMBEDDING);
    const together = await embedRows(session, graph.dimension, ids, 9);
    expect(maxDifference(together, stored(pooling))).toBeLessThan(EMBEDDING);
    session.close();
  },
);

test('without normalisation vectors point the same way and keep their length', async () => {
  const plain = await build({ pooling: 'mean', normalise: false });
  const session = await openEncoder(plain);
  const rows = await embedRows(session, plain.dimension, ids);
  const lengths = rows.map((row) => Math.hypot(...row));
  expect(lengths.some((length) => Math.abs(length - 1) > 0.1)).toBe(true);
  const scaled = rows.map((row, index) => row.map((value) => value / lengths[index]!));
  expect(maxDifference(scaled, stored('mean'))).toBeLessThan(EMBEDDING);
  session.close();
});

test('a row without tokens gives finite numbers', async () => {
  const graph = await build({ pooling: 'mean', normalise: true });
  const session = await openEncoder(graph);
  const [empty, full] = await embedRows(session, graph.dimension, [[], ids[0]!]);
  expect(empty!.every(Number.isFinite)).toBe(true);
  expect(maxDifference([full!], [stored('mean')[0]!])).toBeLessThan(EMBEDDING);
  session.close();
});

describe('descriptions', () => {
  const config = readJson('models', 'tiny-bert', 'config.json');

  test.each([
    [{ model_type: 'xlm-roberta' }, /encoder architecture "xlm-roberta" is not supported; supported: bert/],
    [{ hidden_act: 'relu' }, /hidden_act "relu"/],
    [{ position_embedding_type: 'relative_key' }, /position_embedding_type/],
  ])('%j is refused by name', (change, message) => {
    expect(() => describeEncoder({ ...config, ...change })).toThrow(
      expect.objectContaining({ code: 'unsupported', message: expect.stringMatching(message) }),
    );
  });

  test('a tensor of another shape is refused with both shapes', () => {
    const source = openWeights(fixture('models', 'tiny-bert'));
    const other = describeEncoder({ ...config, intermediate_size: 96 });
    expect(() => encoderWeights(other, source)).toThrow(
      /intermediate\.dense\.weight" is \[128,64\], the config says \[96,64\]/,
    );
  });
});
