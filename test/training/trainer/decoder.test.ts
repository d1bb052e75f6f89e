import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importModel } from '../../../src/model/index.js';
import { openDecoderWeights } from '../../../src/training/trainer/decoder.js';

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
