// The loop over a real server: questions, late feedback, one step, a publication that no answer notices, a way back, and a
// restart that comes up with what was published.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LoopStatus } from '../../src/loop/index.js';
import { runBuilt } from '../cli/support/built-cli.js';
import { openLoopHouse, type RunningHouse, writeGateQuestions } from '../loop/support/loop-house.js';
import { importTiny } from '../loop/support/tiny-rl-run.js';
import { eventually } from '../support/eventually.js';
import { post, sseData } from '../support/test-server.js';

jest.setTimeout(600_000);

const home = mkdtempSync(join(tmpdir(), 'searchloop-loop-'));
let flags: Record<string, unknown>;
let house: RunningHouse;
let hooks: Server;
const news: { event: string; version: string | null; reasons: string[]; by: string | null }[] = [];

beforeAll(async () => {
  await importTiny(home, join(__dirname, '..', 'fixtures'));
  hooks = createServer((request, response) => {
    let body = '';
    request.on('data', (data) => (body += data));
    request.on('end', () => {
      news.push(JSON.parse(body));
      response.end();
    });
  });
  await new Promise<void>((resolve) => hooks.listen(0, '127.0.0.1', resolve));
  flags = {
    'loop.gateData': writeGateQuestions(join(home, 'gate.jsonl'), 300),
    'loop.webhooks': [`http://127.0.0.1:${(hooks.address() as AddressInfo).port}/`],
  };
  house = await openLoopHouse(home, flags);
});
afterAll(async () => {
  await house?.close();
  hooks?.close();
  rmSync(home, { recursive: true, force: true });
});

interface Answer {
  readonly id: string;
  readonly system_fingerprint: string;
  readonly usage: { readonly searchloop: { readonly model_version: string } };
}

const body = (text: string, more: object = {}) => ({
  model: 'searchloop',
  messages: [{ role: 'user', content: text }],
  ...more,
});

async function ask(text: string): Promise<Answer> {
  const response = await post(`${house.url}/v1/chat/completions`, body(text));
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

/** A stream's versions: the fingerprint of every chunk, and the version of its record. */
async function stream(text: string): Promise<{ fingerprints: string[]; versions: string[] }> {
  const response = await post(
    `${house.url}/v1/chat/completions`,
    body(text, { stream: true, temperature: 1, max_tokens: 40 }),
  );
  expect(response.status).toBe(200);
  const chunks = sseData(await response.text())
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data) as { id: string; system_fingerprint: string; error?: object });
  expect(chunks.some(({ error }) => error !== undefined)).toBe(false);
  const stored = await house.store.get(chunks[0]?.id ?? '');
  return {
    fingerprints: [...new Set(chunks.map(({ system_fingerprint }) => system_fingerprint))],
    versions: [...new Set(stored?.record.versions.map(({ adapterVersion }) => adapterVersion))],
  };
}

const order = async (name: string, order: object = {}): Promise<LoopStatus> => {
  const response = await post(`${house.url}/admin/loop/${name}`, order);
  expect([response.status, name]).toEqual([200, name]);
  return (await response.json()) as LoopStatus;
};
const status = async (): Promise<LoopStatus> =>
  (await (await fetch(`${house.url}/admin/loop`)).json()) as LoopStatus;

let before: Answer;
let published: string;

test('late feedback, one step, a publication under load: no request fails, none is answered by two versions', async () => {
  expect(await status()).toMatchObject({ object: 'loop', state: 'waiting', live: 'base', step: 0 });
  const answers = [];
  for (const colour of ['red', 'green', 'blue', 'white']) answers.push(await ask(`What is ${colour}?`));
  before = answers[0] as Answer;
  for (const { id } of answers)
    expect((await post(`${house.url}/v1/feedback`, { id, golden_answers: ['a colour'] })).status).toBe(200);

  let going = true;
  const seen: Awaited<ReturnType<typeof stream>>[] = [];
  const client = async (name: string): Promise<void> => {
    for (let i = 0; going; i++) {
      seen.push(await stream(`${name} ${i}?`));
      // Users pause; in the pauses the loop works.
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  };
  const clients = [client('one'), client('two')];
  try {
    const after = await order('step');
    expect(house.failures).toEqual([]);
    expect(after).toMatchObject({ step: 1, state: 'waiting', counts: { published: 1, refused: 0 } });
    published = after.live;
  } finally {
    going = false;
    await Promise.all(clients);
  }
  await Promise.all([stream('after one?'), stream('after two?')].map(async (item) => seen.push(await item)));
  expect(published).toMatch(/^[0-9a-f]{64}$/);
  for (const { fingerprints, versions } of seen) {
    expect(fingerprints).toHaveLength(1);
    expect(versions).toHaveLength(1);
  }
  expect(new Set(seen.flatMap(({ versions }) => versions))).toEqual(new Set(['base', published]));
  // Users came while the loop rolled out, and it left.
  expect((await status()).yields).toBeGreaterThan(0);
});

test('the response says the version; the receipt says where it comes from', async () => {
  const response = await post(`${house.url}/v1/chat/completions`, body('What is blue?', { stream: true }));
  expect(response.headers.get('x-searchloop-version')).toBe(published);
  await response.text();
  const answer = await ask('What is red?');
  expect(answer.usage.searchloop.model_version).toBe(published);
  expect(before.usage.searchloop.model_version).toBe('base');
  expect(answer.system_fingerprint).not.toBe(before.system_fingerprint);
  const receipt = (await house.store.readDocument(`loop.receipt.${published}`)) as Record<string, unknown>;
  expect(receipt).toMatchObject({
    version: published,
    parent: 'base',
    steps: [published],
    publishedBy: 'the loop',
    // The step was asked for; a key would be named by its id.
    orderedBy: 'anonymous',
  });
  expect(receipt.trajectoryIds).toContain(before.id);
  expect((receipt.gate as { name: string; passed: boolean }[]).map(({ passed }) => passed)).toEqual(
    Array(5).fill(true),
  );
  const [adapter] = await house.store.adapters();
  expect(adapter).toMatchObject({ digest: published, deletedRecords: 0 });
  // The rollouts of the step are kept and bound to their asker's question.
  expect(adapter?.trajectoryIds).toHaveLength(2 + 8);
  await eventually(() => news.length === 1);
  expect(news[0]).toMatchObject({ event: 'published', version: published });
});

test('the list of models has it at once, and says that it answers', async () => {
  const { data } = (await (await fetch(`${house.url}/v1/models`)).json()) as {
    data: { id: string; searchloop: { adapter_version: string } }[];
  };
  const versions = new Map(data.map(({ id, searchloop }) => [id, searchloop.adapter_version]));
  expect(versions.get('searchloop')).toBe(published);
  expect(versions.get(`searchloop@loop-${published.slice(0, 16)}`)).toBe(published);
  expect(versions.get('searchloop@base')).toBe('base');
});

test('a restart comes up with the published version; what is half-written is ignored and reported', async () => {
  await house.close();
  const left = join(home, 'data', 'loop', 'versions', '.partial-0000');
  mkdirSync(left);
  house = await openLoopHouse(home, flags);
  expect(house.notes.join('\n')).toContain(`ignored: ${left} is half-written`);
  expect(await status()).toMatchObject({ live: published, state: 'waiting', step: 1 });
  expect((await ask('What is red?')).usage.searchloop.model_version).toBe(published);
});

test('rollback, pause and resume by an admin; news of each', async () => {
  expect(await order('rollback', { reason: 'to see it' })).toMatchObject({
    live: 'base',
    published: [],
    counts: { rolled_back: 1 },
  });
  expect((await ask('What is red?')).usage.searchloop.model_version).toBe('base');
  expect((await post(`${house.url}/admin/loop/rollback`, {})).status).toBe(400);
  expect(await order('pause', { reason: 'lunch' })).toMatchObject({ state: 'paused', paused_for: 'lunch' });
  expect((await post(`${house.url}/admin/loop/step`, {})).status).toBe(400);
  expect(await order('resume')).toMatchObject({ state: 'waiting', paused_for: null });
  // Training went back too: the next step starts from the beginning, and its receipt says so.
  const again = await order('step');
  expect(again).toMatchObject({ step: 2, counts: { published: 2 } });
  const adapters = await house.store.adapters();
  expect(adapters.find(({ digest }) => digest === again.live)?.parentDigest).toBe(
    adapters.find(({ digest }) => digest === published)?.parentDigest,
  );
  await eventually(() => news.length >= 4);
  expect(news.map(({ event }) => event)).toEqual(['published', 'rolled_back', 'paused', 'published']);
  expect(news[1]?.reasons).toEqual(['to see it']);
  expect(news.map(({ by }) => by)).toEqual(Array(4).fill('anonymous'));
  expect(await house.store.readDocument(`loop.receipt.${published}`)).toMatchObject({
    publishedBy: 'the loop',
    rolledBack: { reason: 'to see it', by: 'anonymous', at: expect.any(Number) },
  });
});

test('what was published, and the receipt of each, also on the command line', async () => {
  const { live } = await status();
  const versions = `${house.url}/admin/loop/versions`;
  const list = (await (await fetch(versions)).json()) as { data: Record<string, unknown>[] };
  const head = { parent: 'base', published_by: 'the loop', ordered_by: 'anonymous', on_trial: false };
  expect(list).toMatchObject({ object: 'list', start: 'base', live });
  expect(list.data).toMatchObject([
    { ...head, version: published, live: false, rolled_back: { reason: 'to see it', by: 'anonymous' } },
    { ...head, version: live, live: true, rolled_back: null },
  ]);
  const receipt = (await (await fetch(`${versions}/${published}`)).json()) as Record<string, unknown>;
  const stored = (await house.store.readDocument(`loop.receipt.${published}`)) as Record<string, unknown>;
  expect(receipt).toMatchObject({ ...list.data[0], steps: [published], object: 'loop.receipt' });
  expect(receipt['trajectory_ids']).toEqual(stored['trajectoryIds']);
  expect(receipt['gate']).toEqual(stored['gate']);
  const unknown = await fetch(`${versions}/${published.slice(0, 12)}`);
  expect([unknown.status, await unknown.json()]).toMatchObject([
    404,
    {
      error: {
        code: 'version_not_found',
        message: expect.stringContaining(`published were ${live}, ${published}`),
      },
    },
  ]);
  expect((await post(versions, {})).status).toBe(405);
  const foreign = { headers: { origin: 'https://evil.example' } };
  for (const url of [versions, `${versions}/${published}`])
    expect((await fetch(url, foreign)).status).toBe(403);

  const command = (...args: string[]) => runBuilt(['loop', 'receipt', ...args, '--url', house.url], {});
  const asJson = await command(published, '--json');
  expect([asJson.code, JSON.parse(asJson.stdout)]).toEqual([0, receipt]);
  expect(await command('deadbeef')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`version deadbeef was not published; published were ${live}`),
  });
});

test('without keys a page that happens to be open gives no orders and says nothing of answers', async () => {
  const before = await status();
  const { id } = await ask('What is red?');
  const headers = { origin: 'https://evil.example' };
  for (const name of ['pause', 'step', 'rollback', 'resume'])
    expect((await post(`${house.url}/admin/loop/${name}`, {}, { headers })).status).toBe(403);
  expect((await post(`${house.url}/v1/feedback`, { id, rating: 'down' }, { headers })).status).toBe(403);
  expect(await house.store.feedbackOf([id])).toEqual([]);
  const { state, step, live, counts } = before;
  expect(await status()).toMatchObject({ state, step, live, counts });
  const own = { headers: { origin: house.url } };
  expect((await post(`${house.url}/admin/loop/pause`, {}, own)).status).toBe(200);
  expect((await post(`${house.url}/admin/loop/resume`, {}, own)).status).toBe(200);
});

test('orders are checked: unknown fields, methods, bodies', async () => {
  expect((await post(`${house.url}/admin/loop/pause`, { reson: 'x' })).status).toBe(400);
  expect((await post(`${house.url}/admin/loop/pause`, '{')).status).toBe(400);
  expect((await fetch(`${house.url}/admin/loop/pause`)).status).toBe(405);
  expect((await fetch(`${house.url}/admin/nothing`)).status).toBe(404);
});
