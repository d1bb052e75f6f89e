// Pulls in processes of their own: two at once, and killed at any moment.

import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.js';
import { COMMIT, type HubServer, sha256, startHub } from '../../support/hub-server.js';
import { type PullProcess, startPull } from './pull-process.js';

const REPO = 'someone/model';
/** Blocks of sums of their own numbers: 3 MB without repetition. */
const weights = Buffer.concat(
  Array.from({ length: 100_000 }, (_, i) => createHash('sha256').update(String(i)).digest()),
);

let home: string;
let manifestFile: string;
let hub: HubServer;
const running: PullProcess[] = [];
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'processes-'));
  hub = await startHub(REPO, { 'w.gguf': weights });
  manifestFile = join(home, 'm.json');
  writeFileSync(
    manifestFile,
    JSON.stringify({
      formatVersion: 1,
      id: 'it',
      title: 'It',
      kind: 'decoder',
      licence: 'MIT',
      architecture: 'llama',
      files: [{ path: 'w.gguf', role: 'weights', sizeBytes: weights.length, sha256: sha256(weights) }],
      sources: [{ type: 'hub', repo: REPO, revision: COMMIT }],
      embedder: null,
    }),
  );
});
afterEach(async () => {
  for (const { child, outcome } of running.splice(0)) {
    child.kill('SIGKILL');
    await outcome;
  }
  await hub.close();
  rmSync(home, { recursive: true, force: true });
});

function start(): PullProcess {
  const process = startPull(manifestFile, home, {
    HF_ENDPOINT: hub.endpoint,
    HF_HUB_OFFLINE: '',
    HF_TOKEN: '',
  });
  running.push(process);
  return process;
}

const blob = (): string => join(home, 'downloads', 'sha256', sha256(weights));
const sent = (): number => hub.transfers.reduce((sum, { bytesSent }) => sum + bytesSent, 0);

test('of two at once one fetches, both have the file', async () => {
  hub.faults.slowMs = 10;
  const outcomes = await Promise.all([start().outcome, start().outcome]);
  for (const outcome of outcomes) expect(outcome?.files).toEqual([blob()]);
  expect(sent()).toBe(weights.length);
  expect(readdirSync(join(home, 'downloads', 'partial'))).toEqual([]);
});

test('a killed pull leaves nothing that is used, and the next one goes on from it', async () => {
  hub.faults.slowMs = 20;
  const first = start();
  await eventually(() => sent() > 1_500_000);
  first.child.kill('SIGKILL');
  expect(await first.outcome).toBeNull();
  expect(existsSync(blob())).toBe(false);
  hub.faults.slowMs = 0;
  expect((await start().outcome)?.files).toEqual([blob()]);
  expect(sha256(readFileSync(blob()))).toBe(sha256(weights));
  expect(Number(/bytes=(\d+)-/.exec(hub.transfers.at(-1)?.range ?? '')?.[1])).toBeGreaterThan(1_000_000);
  expect(readdirSync(join(home, 'downloads', 'partial'))).toEqual([]);
});

test('killed again and again at other moments, the pull still comes to its end', async () => {
  hub.faults.slowMs = 2;
  for (const delay of [0, 15, 40, 80]) {
    const process = start();
    await process.started;
    await new Promise((resolve) => setTimeout(resolve, delay));
    process.child.kill('SIGKILL');
    await process.outcome;
    if (existsSync(blob())) expect(sha256(readFileSync(blob()))).toBe(sha256(weights));
  }
  expect((await start().outcome)?.files).toEqual([blob()]);
  expect(sha256(readFileSync(blob()))).toBe(sha256(weights));
});
