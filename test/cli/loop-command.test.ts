// `loop status` against servers without a loop, and one whose gate has nothing to judge by.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidInputError } from '../../src/errors.js';
import { type LoopControl, type Receipt, receiptDocument } from '../../src/loop/index.js';
import { importModel } from '../../src/model/index.js';
import { openTrajectoryStore } from '../../src/trajectory/index.js';
import { startTestServer } from '../support/test-server.js';
import { type Outcome, runBuilt } from './support/built-cli.js';

const status = (url: string): Promise<Outcome> => runBuilt(['loop', 'status', '--url', url], {});

test('a server without a loop: off or still starting, and no fault of the line', async () => {
  const ready = await startTestServer();
  const starting = await startTestServer({
    parts: { policy: () => ({ state: 'loading', reason: 'starting' }) },
  });
  try {
    const [off, early] = await Promise.all([status(ready.url), status(starting.url)]);
    expect(off).toMatchObject({ code: 1, stderr: expect.stringContaining('loop.enabled is false there') });
    expect(early).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('still starting: model is loading: starting'),
    });
  } finally {
    await Promise.all([ready.close(), starting.close()]);
  }
}, 60_000);

test('loop receipt: what a store knows of published versions, in words and as JSON', async () => {
  const home = mkdtempSync(join(tmpdir(), 'searchloop-loop-receipt-'));
  const settings = { 'paths.data': home };
  const [first, second] = ['a'.repeat(64), 'b'.repeat(64)] as const;
  const receipt = (version: string, parent: string, publishedAt: number): Receipt => ({
    version,
    parent,
    steps: [version],
    trajectoryIds: ['r1', 'r2'],
    seeds: [7],
    configDigest: 'c'.repeat(64),
    indexSnapshotId: 'snapshot',
    // JSON has no NaN.
    metrics: { loss: 0.123456789, kl: null as unknown as number },
    gate: [{ name: 'probe', passed: true, value: 1, limit: 0, words: 'it changes something' }],
    publishedBy: 'the loop',
    orderedBy: 'key-1',
    publishedAt,
  });
  const stored = (...args: string[]): Promise<Outcome> =>
    runBuilt(['loop', 'receipt', ...args, '--stored'], settings);
  try {
    expect(await stored()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('none was published yet'),
    });
    const path = join(home, 'trajectories.db');
    const store = openTrajectoryStore({ storage: { kind: 'sqlite', path }, retry: false });
    const rolledBack = { reason: 'it was worse', by: null, at: 86_400_000 };
    await store.putDocuments({
      [receiptDocument(first)]: receipt(first, 'base', 1000),
      [receiptDocument(second)]: { ...receipt(second, first, 2000), rolledBack },
    });
    await store.close();
    const [list, one, json, none] = await Promise.all([
      stored(),
      stored(second),
      stored(second, '--json'),
      stored('bbbbbbbb'),
    ]);
    expect(list.stdout.split('\n').slice(0, 2)).toEqual([
      `${first}  1970-01-01T00:00:01.000Z by the loop, ordered by key-1; from base by 1 step`,
      `${second}  1970-01-01T00:00:02.000Z by the loop, ordered by key-1; from aaaaaaaaaaaa by 1 step  taken back`,
    ]);
    expect(one.stdout).toMatch(/^version +b{64} {2}taken back\nparent +a{64}\n/);
    expect(one.stdout).toContain('taken back 1970-01-02T00:00:00.000Z by the loop: it was worse\n');
    expect(one.stdout).toMatch(
      /learned +from 2 records.*\n[\s\S]*yes {2}it changes something\n[\s\S]*loss 0.123457\n {2}kl -\n/,
    );
    expect(JSON.parse(json.stdout)).toMatchObject({
      version: second,
      rolled_back: rolledBack,
      ordered_by: 'key-1',
    });
    expect(none).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`published were ${second}, ${first}`),
    });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}, 120_000);

test('loop run says what it needs', async () => {
  expect(await runBuilt(['loop', 'run'], {})).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('expected --once'),
  });
}, 60_000);

test('a loop without questions to judge by: the log warns, and the status says it', async () => {
  const home = mkdtempSync(join(tmpdir(), 'searchloop-loop-command-'));
  try {
    await importModel(join(__dirname, '..', 'fixtures', 'models', 'tiny-llama'), home);
    let asked: Promise<Outcome> | undefined;
    const served = await runBuilt(
      ['serve', '--port', '0', '--json'],
      {
        'paths.home': home,
        'paths.data': join(home, 'data'),
        'model.policy': 'tiny-llama',
        'engine.precision': 'fp32',
        'engine.threads': '1',
        // Nothing is searched here.
        'retrieval.kind': 'remote',
        'retrieval.remoteUrl': 'http://127.0.0.1:9',
        'loop.enabled': 'true',
      },
      (child, { stdout }) => {
        const line = /^\{"url".*$/m.exec(stdout)?.[0];
        if (line === undefined) return;
        asked ??= status(JSON.parse(line).url).finally(() => child.kill('SIGINT'));
      },
    );
    expect(`${served.stdout}${served.stderr}`).toMatch(
      /"level":(40|"warn").*loop\.gateData is not set, and a verdict takes 300/,
    );
    expect(await asked).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^waiting: .* a step needs 16\nsince +20\d\d-.*Z\nstep +0, 1 step to the gate, mode .*\n(?:.*\n)*labels .* 0 to judge by, .*\njudging +not possible yet: a verdict takes 300 questions/,
      ),
    });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}, 120_000);

test('an order may take longer than the built-in fetch waits for an answer', async () => {
  // Its five minutes, cut to next to nothing.
  const impatient = `await fetch('data:,');
    const name = Symbol.for('undici.globalDispatcher.1');
    globalThis[name] = new globalThis[name].constructor({ headersTimeout: 1 });`;
  const step = async (): Promise<never> => {
    await sleep(3000);
    throw new InvalidInputError('the loop is paused');
  };
  const server = await startTestServer({ loop: () => ({ step }) as unknown as LoopControl });
  const preload = `--import=data:text/javascript,${encodeURIComponent(impatient)}`;
  const outcome = await runBuilt(['loop', 'step', '--url', server.url], {}, undefined, [preload]);
  await server.close();
  expect(outcome).toMatchObject({ code: 2, stderr: expect.stringContaining('the loop is paused') });
}, 60_000);
