import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environmentName, loadConfig } from '../../src/config/index.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-config-'));
const file = (text: string): string => {
  const path = join(folder, `${Math.random()}.yaml`);
  writeFileSync(path, text);
  return path;
};

test('defaults stand without any source', () => {
  const config = loadConfig({ env: {} });
  expect(config.server.port).toBe(8000);
  expect(config.engine.precision).toBe('q8');
  expect(Object.isFrozen(config.engine)).toBe(true);
});

test('flags win over environment, environment over file', () => {
  const path = file('server: { port: 1, host: a }\nrollout: { topK: 7 }');
  const config = loadConfig({
    file: path,
    env: { SEARCHLOOP_SERVER_PORT: '2' },
    flags: { 'server.host': 'b' },
  });
  expect([config.server.port, config.server.host, config.rollout.topK]).toEqual([2, 'b', 7]);
});

test.each([
  ['an unknown key is named', 'server: { prot: 1 }', /server: unknown key "prot"/],
  ['an unknown section is named', 'sever: {}', /unknown key "sever"/],
  ['a wrong type is named', 'server: { port: "x" }', /server\.port/],
  ['no path is empty: that would be the working folder', 'paths: { data: "" }', /paths\.data/],
  ['cross-field rules hold', 'retrieval: { kind: remote }', /retrieval\.remoteUrl/],
  ['the live adapter must be configured', 'model: { liveAdapter: a }', /liveAdapter/],
  [
    'a critic needs new rollouts',
    'loop: { algorithm: ppo, mode: logged }',
    /loop\.mode: ppo needs the mode replay/,
  ],
  [
    'a watch must be able to end',
    'loop: { watchMinPairs: 401 }',
    /loop\.watchMaxPairs: must not be below watchMinPairs/,
  ],
  [
    'names of the loop are its own',
    'loop: { enabled: true }\nmodel: { adapters: { loop-mine: a } }',
    /model\.adapters: "loop-mine"/,
  ],
  ['the top must be a mapping', '- 1', /mapping/],
])('%s', (_name, text, message) => {
  expect(() => loadConfig({ file: file(text), env: {} })).toThrow(message);
});

test('a misspelt environment variable is an error', () => {
  expect(() => loadConfig({ env: { SEARCHLOOP_SERVER_PROT: '1' } })).toThrow(/SEARCHLOOP_SERVER_PROT/);
});

test('environment names follow the tree', () => {
  expect(environmentName('server', 'bodyLimitBytes')).toBe('SEARCHLOOP_SERVER_BODY_LIMIT_BYTES');
});

test('every setting stands in the tree, the live adapter too', () => {
  expect(loadConfig({ env: {} }).model.liveAdapter).toBe('default');
  expect(loadConfig({ env: { SEARCHLOOP_MODEL_LIVE_ADAPTER: 'null' } }).model.liveAdapter).toBeNull();
});
