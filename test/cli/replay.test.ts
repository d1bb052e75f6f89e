// `trajectories replay` of answers and rollouts of versions that no configuration names.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findVersion } from '../../src/loop/index.js';
import { NO_NOTES, type TrajectoryRecord } from '../../src/trajectory/index.js';
import { openLoopHouse, writeGateQuestions } from '../loop/support/loop-house.js';
import { importTiny } from '../loop/support/tiny-rl-run.js';
import { post } from '../support/test-server.js';
import { type PassageServer, runBuilt, startPassageServer } from './support/built-cli.js';

jest.setTimeout(600_000);

const home = mkdtempSync(join(tmpdir(), 'searchloop-replay-'));
const data = join(home, 'data');
let passages: PassageServer;
/** A greedy answer of the published version, and a rollout of the version before it. */
let answer: TrajectoryRecord;
let rollout: TrajectoryRecord;
let published: string;

beforeAll(async () => {
  passages = await startPassageServer({ id: 'p1', title: 'Red', text: 'Red is a colour.' });
  await importTiny(home, join(__dirname, '..', 'fixtures'));
  const house = await openLoopHouse(
    home,
    { 'loop.gateData': writeGateQuestions(join(home, 'gate.jsonl'), 12) },
    { gate: { questions: 12, margin: 0.5, confirmEvery: 0 } },
  );
  const ask = async (text: string): Promise<string> => {
    const messages = [{ role: 'user', content: text }];
    const response = await post(`${house.url}/v1/chat/completions`, { model: 'searchloop', messages });
    return ((await response.json()) as { id: string }).id;
  };
  const read = async (id: string) => (await house.store.get(id))?.record as TrajectoryRecord;
  try {
    for (const colour of ['red', 'green', 'blue']) {
      const id = await ask(`What is ${colour}?`);
      const said = await post(`${house.url}/v1/feedback`, { id, golden_answers: ['a colour'] });
      expect(said.status).toBe(200);
    }
    published = (await house.loop.step()).live;
    expect(published).toMatch(/^[0-9a-f]{64}$/);
    answer = await read(await ask('What is white?'));
    const [own] = await house.store.list({ source: 'train' }, { limit: 1, order: 'oldest' });
    rollout = await read(own?.id as string);
    const search = {
      query: 'red',
      passageIds: ['p1'],
      scores: [0.5],
      durationMs: 1,
      error: null,
      duplicate: false,
      observation: [0, 1] as const,
    };
    const snapshot = `remote:${passages.url}/retrieve`;
    const variants: [string, Partial<TrajectoryRecord>][] = [
      ['changed', { logprobs: answer.logprobs.map((value) => value - 0.5) }],
      ['gone', { versions: answer.versions.map((span) => ({ ...span, adapterVersion: 'f'.repeat(64) })) }],
      ['searched', { searches: [search], indexSnapshotId: snapshot }],
      ['other-passage', { searches: [{ ...search, passageIds: ['p2'] }], indexSnapshotId: snapshot }],
      ['older', { searches: [search], indexSnapshotId: 'older' }],
    ];
    for (const [id, changes] of variants) await house.store.put({ ...answer, id, ...changes }, NO_NOTES);
  } finally {
    await house.close();
  }
});
afterAll(async () => {
  await passages?.close();
  rmSync(home, { recursive: true, force: true });
});

const replay = (id: string, ...flags: string[]) =>
  runBuilt(['trajectories', 'replay', id, ...flags], {
    'paths.home': home,
    'paths.data': data,
    'model.policy': 'tiny-llama',
    'engine.precision': 'fp32',
    'engine.threads': '1',
    'engine.maxSequenceTokens': '640',
    'retrieval.kind': 'remote',
    'retrieval.remoteUrl': passages.url,
  });

test('an answer of a published version comes out the same, token by token', async () => {
  expect(answer.versions[0]?.adapterVersion).toBe(published);
  const { code, stdout } = await replay(answer.id, '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    id: answer.id,
    isSame: true,
    scored: answer.logprobs.filter((_, at) => answer.origin[at]?.startsWith('policy')).length,
    changedTokens: 0,
    changedSearches: null,
    index: null,
    policy: { version: published, from: 'published' },
  });
  expect(code).toBe(0);
});

test('a rollout of a version that was never published is proved by the checkpoint', async () => {
  const version = rollout.versions[0]?.adapterVersion;
  expect(version).not.toBe(published);
  const { code, stdout } = await replay(rollout.id, '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    isSame: true,
    changedTokens: null,
    policy: { version, from: 'checkpoint' },
  });
  expect(code).toBe(0);
});

test('searches are repeated over the same index; where it is another one, the output says so', async () => {
  expect(await replay('searched')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('gave other passages: 0\n'),
  });
  expect(await replay('other-passage')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('gave other passages: 1\n'),
  });
  expect(await replay('older')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(
      `searches were not repeated: the index was older then, and is remote:${passages.url}/retrieve now\n`,
    ),
  });
});

test('a record that does not hold, and one whose version is nowhere: exit code 1', async () => {
  expect(await replay('changed')).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(
      /differ by 0\.5\d* on average.*\n.*\n.*\nTHE RECORD DOES NOT COME OUT THE SAME/,
    ),
  });
  expect(await replay('gone')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`version ${'f'.repeat(64)} is gone: it is not configured`),
  });
  // What an imported record says is no path.
  expect(await findVersion(join(data, 'loop'), published)).toMatchObject({ kind: 'published' });
  expect(await findVersion(join(data, 'loop'), `../versions/${published}`)).toBeNull();
});

test('a published version whose files were damaged is proved by its checkpoint', async () => {
  writeFileSync(join(data, 'loop', 'versions', published, 'adapter_model.safetensors'), 'damaged');
  const { code, stdout } = await replay(answer.id);
  expect(stdout).toContain(`version ${published} (a checkpoint of the loop)\n`);
  expect(stdout).toContain('greedy: every token is the likeliest again\n');
  expect(stdout).toContain('the record holds');
  expect(code).toBe(0);
});
