// `trajectories` and `keys` over a store.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { runCli } from '../../src/cli/index.js';
import { newLoopState } from '../../src/loop/online/state.js';
import { NO_NOTES, openTrajectoryStore } from '../../src/trajectory/index.js';
import { newWatch } from '../loop/support/watch.js';
import { feedback, makeRecord } from '../trajectory/store/support.js';

jest.setTimeout(180_000);

let folder: string;
let path: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'searchloop-store-commands-'));
  path = join(folder, 'store.db');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => jest.restoreAllMocks());

async function run(...args: string[]) {
  const printed = { out: '', err: '' };
  jest.spyOn(process.stdout, 'write').mockImplementation((text) => (printed.out += text) !== '');
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => (printed.err += text) !== '');
  const code = await runCli([...args, '--set', `store.path=${path}`]);
  jest.restoreAllMocks();
  return { code, ...printed };
}

test('an answer that is not there: exit code 1, and what is there is removed', async () => {
  const store = openTrajectoryStore({ storage: { kind: 'sqlite', path }, retry: false });
  for (const id of ['a', 'b']) await store.put(makeRecord(id), NO_NOTES);
  await store.close();

  expect(await run('trajectories', 'delete', '-y', 'nope')).toEqual({
    code: 1,
    out: '',
    err: 'error: there is no such stored answer: "nope"\n',
  });
  expect(await run('trajectories', 'audit', 'nope')).toMatchObject({
    code: 1,
    err: 'error: there is no such stored answer: "nope"\n',
  });
  const some = await run('trajectories', 'delete', '-y', 'nope', 'a', 'neither');
  expect(some).toMatchObject({ code: 1, err: 'error: there is no such stored answer: "nope", "neither"\n' });
  expect(some.out).toMatch(/^deleted 1 answer, 0 pieces of feedback\n/);
  expect((await run('trajectories', 'list')).out).toMatch(/^b .*\n.*\n1 answer, 0 pieces of feedback/);
  expect((await run('trajectories', 'delete', '-y', '--user', 'nobody')).code).toBe(0);

  // A script that says neither yes nor --yes learns that nothing happened.
  jest.spyOn(process, 'stdin', 'get').mockReturnValue(Readable.from([]) as typeof process.stdin);
  const unconfirmed = await run('trajectories', 'delete', 'b');
  expect(unconfirmed).toMatchObject({ code: 1, out: '' });
  expect(unconfirmed.err).toContain('error: nothing was deleted; --yes deletes without asking');
  expect((await run('trajectories', 'list')).out).toMatch(/^b /);
  // A key may have spoken of others' answers, though it asked nothing.
  jest.spyOn(process, 'stdin', 'get').mockReturnValue(Readable.from([]) as typeof process.stdin);
  const ofKey = await run('trajectories', 'delete', '--key', 'critic');
  expect(ofKey).toMatchObject({ code: 1, out: '' });
  expect(ofKey.err).toContain('Delete 0 answers, rollouts of their questions and all feedback by this key?');
});

test('what a key said can go alone', async () => {
  const only = ['trajectories', 'delete', '--feedback-only'];
  for (const flags of [[], ['--user', 'u', '--key', 'critic'], ['--key', 'critic', 'b']])
    expect((await run(...only, '-y', ...flags)).err).toContain('--feedback-only: expected --key');
  const store = openTrajectoryStore({ storage: { kind: 'sqlite', path }, retry: false });
  const { entry } = await store.addFeedback(feedback('b', { keyId: 'critic', reward: 1 }));
  // A loop that was turned off while users were trying a version.
  const by = [{ feedbackId: entry.id, keyId: 'critic', role: 'feedback' as const }];
  const watch = newWatch({
    newer: [{ id: 'b', outcome: 1, by }],
    weights: { newer: { critic: 1 }, older: {} },
  });
  await store.putDocuments({ loop: { ...newLoopState(0, 'old'), watch } });
  await store.close();
  jest.spyOn(process, 'stdin', 'get').mockReturnValue(Readable.from([]) as typeof process.stdin);
  const unconfirmed = await run(...only, '--key', 'critic');
  expect(unconfirmed.err).toContain('Delete all feedback by the key critic?');
  expect(await run(...only, '-y', '--key', 'critic')).toMatchObject({
    code: 0,
    out: 'deleted 1 piece of feedback\n',
  });
  expect((await run('trajectories', 'list')).out).toMatch(/1 answer, 0 pieces of feedback/);
  const after = openTrajectoryStore({ storage: { kind: 'sqlite', path }, retry: false });
  const state = await after.readDocument('loop');
  await after.close();
  expect(state).toMatchObject({ watch: { newer: [], weights: { newer: {} } } });
});

test('no keys are called that', async () => {
  expect(await run('keys', 'list')).toEqual({ code: 0, out: 'no keys\n', err: '' });
});

// Last: from here on the process stands interrupted.
test('Ctrl-C ends an export with 130, to standard output and to a file', async () => {
  const store = openTrajectoryStore({ storage: { kind: 'sqlite', path }, retry: false });
  for (const id of ['x', 'y', 'z']) await store.put(makeRecord(id), NO_NOTES);
  await store.close();
  let out = '';
  jest.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += text;
    process.emit('SIGINT');
    return true;
  });
  jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  const flags = ['trajectories', 'export', '--all', '--set', `store.path=${path}`];
  expect(await runCli(flags)).toBe(130);
  jest.restoreAllMocks();
  expect(out.trim().split('\n')).toHaveLength(1);
  const toFile = await run('trajectories', 'export', '--all', '-o', join(folder, 'export.jsonl'));
  expect(toFile).toMatchObject({ code: 130, out: '' });
  expect(toFile.err).not.toContain('    at ');
});
