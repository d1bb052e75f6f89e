// What a server serves when the engine's worker comes back.

import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServedParts } from '../../src/cli/served-parts.js';
import { loadConfig, packageRoot } from '../../src/config/index.js';
import type { Engine } from '../../src/engine/index.js';
import { importModel } from '../../src/model/index.js';
import { createLogger } from '../../src/telemetry/index.js';
import { eventually } from '../support/eventually.js';
import { RAW_POLICY } from '../support/rollout-kit.js';

const home = mkdtempSync(join(tmpdir(), 'searchloop-served-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

test('a prompt file that was spoilt since the start changes nothing when the engine comes back', async () => {
  const prompt = join(home, 'prompt.yaml');
  cpSync(join(packageRoot, 'config', 'prompts', 'search-r1.yaml'), prompt);
  await importModel(join(__dirname, '..', 'fixtures', 'models', 'tiny-llama'), home);
  const config = loadConfig({
    env: {},
    flags: {
      'paths.home': home,
      'paths.data': join(home, 'data'),
      'model.policy': 'tiny-llama',
      'engine.precision': 'fp32',
      'engine.threads': 1,
      'rollout.prompt': prompt,
      // Nothing is searched here.
      'retrieval.kind': 'remote',
      'retrieval.remoteUrl': 'http://127.0.0.1:9',
    },
  });
  const parts = new ServedParts(config, null, createLogger({ level: 'silent' }));
  try {
    await parts.load({});
    const before = parts.policy();
    if (before.state !== 'ready') throw new Error(before.reason);
    writeFileSync(prompt, 'method: nonsense');
    const sequence = await (before.value.engine as Engine).open();
    sequence.append([1]);
    // A stop string that is no text ends the worker.
    const stopStrings = [{ length: 1 }] as never;
    const options = { sampling: RAW_POLICY, maxTokens: 1, stopStrings, stopTokenIds: [], ignoreEos: true };
    await expect(sequence.generate(options).next()).rejects.toThrow('died');
    expect(parts.policy().state).toBe('loading');
    await eventually(() => parts.policy().state === 'ready');
    expect(parts.policy()).toBe(before);
  } finally {
    await parts.close();
  }
}, 120_000);
