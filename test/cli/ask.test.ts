// `ask` over a tiny model and a search server of ours.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importModel } from '../../src/model/index.js';
import { type PassageServer, runBuilt, startPassageServer } from './support/built-cli.js';

const fixtures = join(__dirname, '..', 'fixtures');
let home: string;
let passages: PassageServer;
let settings: Record<string, string>;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'searchloop-ask-'));
  await importModel(join(fixtures, 'models', 'tiny-llama'), home);
  passages = await startPassageServer({ id: 'p1', title: 'Lisbon', text: 'The capital.' });
  settings = {
    'paths.home': home,
    'model.policy': 'tiny-llama',
    'engine.precision': 'fp32',
    'engine.threads': '1',
    'rollout.turnTokens': '4',
    'rollout.observationTokens': '96',
    'retrieval.kind': 'remote',
    'retrieval.remoteUrl': passages.url,
  };
});
afterAll(async () => {
  await passages?.close();
  rmSync(home, { recursive: true, force: true });
});

const ask = (...args: string[]) => runBuilt(['ask', 'Capital?', ...args], settings);

test('as JSON the answer and what was searched; the record only where it is asked for', async () => {
  const short = await ask('--json', '-m', 'rag');
  expect(short).toMatchObject({ code: 0 });
  const answer = JSON.parse(short.stdout);
  expect(answer).toEqual({
    answer: expect.any(String),
    finish: expect.stringMatching(/^(stop|length)$/),
    searches: [{ query: 'Capital?', passages: [{ id: 'p1', title: 'Lisbon', score: 0.5 }], error: null }],
    citations: expect.any(Array),
    usage: expect.objectContaining({ searches: 1 }),
    version: 'base',
  });
  const { record, ...rest } = JSON.parse((await ask('--json', '-m', 'rag', '--record')).stdout);
  expect(record.tokenIds.length).toBeGreaterThan(20);
  expect(rest).toEqual(answer);
}, 60_000);

test('a temperature that HTTP would refuse, and an adapter that is not there', async () => {
  expect(await ask('-t', '9')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('rollout.temperature'),
  });
  const adapters = `model.adapters={"mine":${JSON.stringify(join(fixtures, 'lora', 'tiny-llama', 'policy'))}}`;
  const unknown = await ask('-a', 'nope', '--set', adapters);
  expect(unknown).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there is no adapter "nope"; there are mine, base (the plain model)'),
  });
}, 60_000);
