import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UnsupportedError } from '../../../src/errors.js';
import { type Adapter, importModel } from '../../../src/model/index.js';
import { loraShape, openDecoderWeights } from '../../../src/training/trainer/decoder.js';

test('settings of a model that are no JSON are named', async () => {
  const home = mkdtempSync(join(tmpdir(), 'decoder-'));
  try {
    const model = await importModel(join(__dirname, '..', '..', 'fixtures', 'models', 'tiny-llama'), home);
    const path = model.file('config') as string;
    writeFileSync(path, '{"hidden_size": ');
    const source = model.openWeights();
    expect(() => openDecoderWeights(model, source)).toThrow(`${path}: expected JSON`);
    source.close();
  } finally {
    rmSync(home, { recursive: true });
  }
});

describe('an adapter to train on', () => {
  const adapterOn = (...places: readonly (readonly [number, 'q' | 'down'])[]): Adapter => ({
    digest: '',
    rank: 2,
    modules: places.map(([layer, module]) => {
      const [a, b] = [new Float32Array(), new Float32Array()];
      return { layer, module, rank: 2, scale: 2, a, b };
    }),
  });

  test('changes the same modules in all blocks', () => {
    const shape = { rank: 2, alpha: 4, targetModules: ['q_proj', 'down_proj'] };
    expect(loraShape(adapterOn([0, 'q'], [0, 'down'], [1, 'q'], [1, 'down']), 2)).toEqual(shape);
  });

  test.each([
    ['a block less', adapterOn([0, 'q']), 'layers.1.self_attn.q_proj, one of 1 '],
    [
      'a module in one block only',
      adapterOn([0, 'q'], [1, 'q'], [1, 'down']),
      'layers.0.mlp.down_proj, one of 1 ',
    ],
  ])('is refused by name with %s', (_what, adapter, message) => {
    expect(() => loraShape(adapter, 2)).toThrow(message);
    expect(() => loraShape(adapter, 2)).toThrow(UnsupportedError);
  });
});
