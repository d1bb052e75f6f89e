// The whole way of an answer: asked over HTTP of a tiny model, stored, labelled, listed, shown, scored again,
// exported, imported and deleted on the command line.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openPolicyModel, openRunner, type PolicyModel } from '../../src/cli/application.js';
import { runCli } from '../../src/cli/index.js';
import { openServerStore, recordKeeping } from '../../src/cli/store.js';
import { type Config, loadConfig } from '../../src/config/index.js';
import { importModel } from '../../src/model/index.js';
import { createServer } from '../../src/server/index.js';
import type { SearchloopServer } from '../../src/server/server.js';
import { createLogger } from '../../src/telemetry/index.js';
import type { TrajectoryStore } from '../../src/trajectory/index.js';
import { eventually } from '../support/eventually.js';
import { createMemoryRetriever } from '../support/memory-retriever.js';
import { PASSAGES } from '../support/rollout-kit.js';
import { post, sseData } from '../support/test-server.js';

const MODEL = join(__dirname, '..', 'fixtures', 'models', 'tiny-llama');
const logger = createLogger({ level: 'silent' });

// Commands start threads of their own, which takes its time on a busy machine.
jest.setTimeout(300_000);

let home: string;
let flags: Record<string, unknown>;
let config: Config;
let policy: PolicyModel;
let store: TrajectoryStore;
let server: SearchloopServer;
let url: string;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'searchloop-whole-'));
  await importModel(MODEL, home, { id: 'tiny' });
  flags = {
    'paths.home': home,
    'paths.data': join(home, 'data'),
    'model.policy': 'tiny',
    'engine.precision': 'fp32',
    'engine.maxSequenceTokens': 1024,
    'engine.threads': 1,
    'rollout.turnTokens': 16,
    'rollout.actionBudget': 1,
    'server.port': 0,
    'server.shutdownGraceMs': 0,
    // The machine of a test may be busy.
    'store.commitTimeoutMs': 30_000,
  };
  config = loadConfig({ env: {}, flags });
  policy = await openPolicyModel(config);
  store = openServerStore(config, logger) as TrajectoryStore;
  await store.useAuditor({
    modelDigest: policy.engine.info.modelDigest,
    tokenizer: policy.tokenizerSource,
  });
  const retriever = createMemoryRetriever({ passages: PASSAGES });
  const runner = openRunner(config, policy, retriever, recordKeeping(store, config, logger));
  const { engine, encoding } = policy;
  server = createServer({
    config,
    store,
    logger,
    parts: {
      policy: () => ({ state: 'ready', value: { runner, engine, tokenizer: encoding.tokenizer } }),
      index: () => ({ state: 'ready', value: retriever }),
    },
  });
  ({ url } = await server.listen());
  await eventually(() => store.health().waiting === 0);
  // Until the keys were read once, nobody gets in.
  await eventually(async () => (await fetch(`${url}/v1/models`)).status === 200);
});

afterAll(async () => {
  await server?.close();
  await store?.close();
  await policy?.close();
  rmSync(home, { recursive: true, force: true });
});

async function cli(args: readonly string[], changes: Record<string, unknown> = {}) {
  const out: string[] = [];
  const err: string[] = [];
  jest.spyOn(process.stdout, 'write').mockImplementation((text) => out.push(String(text)) > 0);
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => err.push(String(text)) > 0);
  try {
    const settings = Object.entries({ ...flags, ...changes }).flatMap(([key, value]) => [
      '--set',
      `${key}=${JSON.stringify(value)}`,
    ]);
    const code = await runCli([...args, ...settings]);
    return { code, out: out.join(''), err: err.join('') };
  } finally {
    jest.restoreAllMocks();
    process.exitCode = 0;
  }
}

const question = (fields: object = {}) => ({
  model: 'searchloop:rag',
  messages: [{ role: 'user', content: 'capital of Portugal?' }],
  user: 'ada',
  ...fields,
});

interface Answer {
  id: string;
  choices: { searchloop?: { answer_id: string; stored: boolean } }[];
}

async function ask(fields: object = {}, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await post(`${url}/v1/chat/completions`, question(fields), { headers });
  const body = await response.text();
  expect([response.status, body]).toEqual([200, body]);
  return JSON.parse(body) as Answer;
}

const say = (body: object, headers: Record<string, string> = {}) =>
  post(`${url}/v1/feedback`, body, { headers });

test('an answer is stored, audited and can be proved', async () => {
  const answer = await ask();
  expect(answer.choices[0]?.searchloop).toEqual({ answer_id: answer.id, stored: true });
  const stored = await store.get(answer.id);
  expect(stored?.head).toMatchObject({
    auditState: 'clean',
    userKey: 'ada',
    keyId: 'anonymous',
    source: 'serve',
  });
  expect(stored?.notes.messages).toEqual([{ role: 'user', content: 'capital of Portugal?' }]);
  expect(stored?.record.searches).toHaveLength(1);

  const replayed = await cli(['trajectories', 'replay', answer.id, '--json'], {
    // The index of the command is another than the server's: only the tokens are compared.
    'retrieval.kind': 'remote',
    'retrieval.remoteUrl': 'http://127.0.0.1:9/retrieve',
  });
  expect(replayed.err).toBe('');
  const report = JSON.parse(replayed.out);
  expect(report).toMatchObject({ isSame: true, changedTokens: 0, changedSearches: null });
  expect(report.scored).toBe(stored?.head.sampled);
  expect(report.largestDifference).toBeLessThan(1e-3);

  const shown = await cli(['trajectories', 'show', answer.id]);
  expect(shown.out).toContain(`id        ${answer.id}`);
  expect(shown.out).toContain('[policy] ');
  const table = await cli(['trajectories', 'show', answer.id, '--tokens']);
  const rows = table.out.split('\n').filter((row) => /^ +\d+ +\d+ (prompt|policy|environment)/.test(row));
  expect(rows).toHaveLength(stored?.head.tokens ?? 0);
});

test('a forged record does not come out the same', async () => {
  const answer = await ask();
  const stored = await store.get(answer.id);
  if (stored === null) throw new Error('not stored');
  const { record, notes } = stored;
  const forged = {
    ...record,
    id: 'forged',
    logprobs: record.logprobs.map((value) => (value === 0 ? 0 : value - 1)),
  };
  await store.put(forged, notes);
  expect((await cli(['trajectories', 'replay', 'forged'])).code).toBe(1);
  await store.delete({ ids: ['forged'] });
});

test('streams tell it with the last chunk, several choices each by itself', async () => {
  const response = await post(`${url}/v1/chat/completions`, question({ stream: true, n: 2 }));
  const chunks = sseData(await response.text())
    .filter((data) => data !== '[DONE]')
    .map(
      (data) =>
        JSON.parse(data) as {
          id: string;
          choices: { index: number; finish_reason: string | null; searchloop?: object }[];
        },
    );
  const ends = chunks.flatMap(({ choices }) => choices).filter((choice) => choice.finish_reason !== null);
  const id = chunks[0]?.id;
  expect(
    ends.map(({ index, searchloop }) => ({ index, searchloop })).sort((a, b) => a.index - b.index),
  ).toEqual([
    { index: 0, searchloop: { answer_id: `${id}-0`, stored: true } },
    { index: 1, searchloop: { answer_id: `${id}-1`, stored: true } },
  ]);
  expect(await store.list({ requestId: id ?? '' }, { limit: 9, order: 'oldest' })).toHaveLength(2);
});

test('store: false keeps nothing', async () => {
  const before = await store.counts();
  const answer = await ask({ store: false });
  expect(answer.choices[0]?.searchloop).toBeUndefined();
  expect(await store.get(answer.id)).toBeNull();
  expect(await store.counts()).toEqual({ ...before, sizeBytes: expect.any(Number) });
  expect((await say({ id: answer.id, reward: 1 })).status).toBe(404);
  const refused = await post(
    `${url}/v1/chat/completions`,
    question({ store: false, searchloop: { golden_answers: ['Lisbon'] } }),
  );
  expect(refused.status).toBe(400);
});

test('an answer whose reader leaves is kept as cancelled', async () => {
  const leaving = new AbortController();
  const response = await post(
    `${url}/v1/chat/completions`,
    question({ stream: true, model: 'searchloop:chat', max_tokens: 900, ignore_eos: true }),
    {
      signal: leaving.signal,
    },
  );
  await response.body?.getReader().read();
  leaving.abort();
  const cancelled = async () =>
    (await store.list({}, { limit: 1, order: 'newest' })).some(({ stop }) => stop === 'cancelled');
  for (let tries = 0; tries < 500 && !(await cancelled()); tries++)
    await new Promise((resolve) => setTimeout(resolve, 20));
  expect(await cancelled()).toBe(true);
});

test('feedback and gold answers become the label, each with its source', async () => {
  const answer = await ask({ searchloop: { golden_answers: ['Lisbon'] } });
  const first = await say({ id: answer.id, rating: 'up', comment: 'fine' }, { 'idempotency-key': 'one' });
  expect(await first.json()).toMatchObject({
    object: 'feedback',
    answer_id: answer.id,
    stored: true,
    repeated: false,
    source: { key: 'anonymous', role: 'admin' },
  });
  const again = await say({ id: answer.id, rating: 'up', comment: 'fine' }, { 'idempotency-key': 'one' });
  expect(await again.json()).toMatchObject({ repeated: true });
  expect((await say({ id: answer.id, rating: 'down' }, { 'idempotency-key': 'one' })).status).toBe(400);
  const entries = await store.feedbackOf([answer.id]);
  expect(entries).toMatchObject([{ goldAnswers: ['Lisbon'], role: 'admin' }, { rating: 1 }]);
  const listed = await cli(['trajectories', 'list', '--labelled', '--json']);
  expect(JSON.parse(listed.out).trajectories.map(({ id }: { id: string }) => id)).toContain(answer.id);
});

test('out and in again: the same record, feedback once', async () => {
  const answer = await ask();
  await say({ id: answer.id, reward: 0.5, comment: 'a\u2028b\u2029c' });
  const file = join(home, 'answers.jsonl');
  expect((await cli(['trajectories', 'export', '--output', file])).code).toBe(0);
  const lines = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const line = lines.find(({ id }) => id === answer.id);
  expect(line.input_ids).toHaveLength(line.completion_mask.length);
  expect(line.reward).toBe(0.5);
  const elsewhere = { 'paths.data': join(home, 'elsewhere') };
  for (const expected of [{ imported: lines.length }, { imported: 0, present: lines.length, feedback: 0 }]) {
    const done = await cli(['trajectories', 'import', file, '--json'], elsewhere);
    expect(JSON.parse(done.out)).toMatchObject(expected);
  }
  const again = join(home, 'again.jsonl');
  await cli(['trajectories', 'export', '--output', again], elsewhere);
  const copy = readFileSync(again, 'utf8')
    .split('\n')
    .find((text) => text.includes(answer.id));
  const { searchloop: rest, ...outer } = JSON.parse(copy ?? '');
  const { searchloop: ownRest, ...ownOuter } = line;
  expect(outer).toEqual(ownOuter);
  const { notes, feedback, ...record } = JSON.parse(rest);
  const { notes: ownNotes, feedback: ownFeedback, ...ownRecord } = JSON.parse(ownRest);
  expect(record).toEqual(ownRecord);
  expect(notes).toEqual({ ...ownNotes, source: 'import' });
  const said = { reward: 0.5, comment: 'a\u2028b\u2029c', role: 'import', keyId: ownFeedback[0].keyId };
  expect(feedback).toMatchObject([said]);

  writeFileSync(file, '{"id": 1}\n');
  expect(await cli(['trajectories', 'import', file], elsewhere)).toMatchObject({
    code: 2,
    err: expect.stringContaining('line 1'),
  });
  expect((await cli(['trajectories', 'audit'], elsewhere)).code).toBe(0);
});

test('a person has their answers deleted', async () => {
  const mine = await ask({ user: 'grace' });
  const other = await ask({ user: 'other' });
  const deleted = await cli(['trajectories', 'delete', '--user', 'grace', '--yes', '--json']);
  expect(JSON.parse(deleted.out)).toMatchObject({ trajectories: [mine.id], adapters: [] });
  expect(await store.get(mine.id)).toBeNull();
  expect(await store.get(other.id)).not.toBeNull();
  expect((await cli(['trajectories', 'delete', '--yes'])).code).toBe(2);
});

test('keys made on the command line: scopes hold, a revoked one ends', async () => {
  const create = async (name: string, ...scopes: string[]) => {
    const made = await cli([
      'keys',
      'create',
      name,
      ...scopes.flatMap((scope) => ['--scope', scope]),
      '--json',
    ]);
    return JSON.parse(made.out) as { id: string; key: string };
  };
  const asker = await create('asker', 'ask');
  const labeller = await create('labeller', 'feedback');
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
  const status = async (path: string, body: object, key?: string) =>
    (await post(`${url}${path}`, body, { headers: key === undefined ? {} : bearer(key) })).status;
  const chat = (key?: string, fields: object = {}) => status('/v1/chat/completions', question(fields), key);
  // The server takes note within seconds.
  await eventually(async () => (await chat(labeller.key)) === 403);
  expect(await chat()).toBe(401);
  expect(await chat(asker.key)).toBe(200);
  expect(await chat(labeller.key)).toBe(403);
  expect(await chat(asker.key, { searchloop: { golden_answers: ['x'] } })).toBe(403);
  const answer = await ask({}, bearer(asker.key));
  const label = { id: answer.id, reward: 1 };
  expect(await status('/v1/feedback', label, asker.key)).toBe(403);
  expect(await status('/v1/feedback', label, labeller.key)).toBe(200);
  expect(await store.feedbackOf([answer.id])).toMatchObject([{ keyId: labeller.id, role: 'feedback' }]);
  const listed = await cli(['keys', 'list', '--json']);
  expect(listed.out).not.toContain(asker.key.slice(3));
  await cli(['keys', 'revoke', asker.id]);
  await eventually(async () => (await chat(asker.key)) === 401);
});
