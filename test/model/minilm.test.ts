import { readFileSync } from 'node:fs';
import { buildEncoderGraph, describeEncoder, encoderWeights } from '../../src/model/index.js';
import { readJson } from '../support/fixtures.js';
import { realModel } from '../support/real-model.js';
import { embedRows, openEncoder } from './support/encoder-runner.js';
import { maxDifference, storedRows } from './support/fixtures.js';
import { temporaryFolder } from './support/step-runner.js';

jest.setTimeout(300_000);

test('all-MiniLM-L6-v2 gives the stored embeddings, one by one and in padded batches', async () => {
  const model = await realModel('all-minilm-l6-v2');
  const source = model.openWeights();
  const config = describeEncoder(JSON.parse(readFileSync(model.file('config')!, 'utf8')));
  const graph = await buildEncoderGraph({
    weights: encoderWeights(config, source),
    pooling: { pooling: 'mean', normalise: true },
    folder: temporaryFolder(),
    sourceDigest: 'test',
  });
  source.close();
  const session = await openEncoder(graph);
  const ids: number[][] = readJson('minilm', 'tokens.json').cases.map((item: { ids: number[] }) => item.ids);
  const stored = storedRows('minilm', 'embeddings.safetensors')('embeddings');
  const alone: Float32Array[] = [];
  for (const row of ids) alone.push(...(await embedRows(session, graph.dimension, [row])));
  expect(maxDifference(alone, stored)).toBeLessThan(1e-5);
  expect(maxDifference(await embedRows(session, graph.dimension, ids), stored)).toBeLessThan(1e-5);
  session.close();
});
