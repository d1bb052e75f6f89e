import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { importModel } from '../../../src/model/index.js';
import { type DumpMirror, startDumpMirror } from '../../retrieval/corpora/dump-mirror.js';

const main = resolve(__dirname, '..', '..', '..', 'dist', 'main.js');
const fixtures = resolve(__dirname, '..', '..', 'fixtures');
const DUMP = readFileSync(join(fixtures, 'wikipedia', 'multistream.xml.bz2'));

let folder = '';
let mirror: DumpMirror;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'searchloop-index-pull-'));
  mirror = await startDumpMirror();
  mirror.publish('20260101', DUMP);
  await importModel(join(fixtures, 'models', 'tiny-bert'), join(folder, 'home'), {
    id: 'tiny-bert',
    embedder: { pooling: 'mean', normalise: true, maxTokens: 48 },
  });
});
afterAll(async () => {
  await mirror.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function pull(args: readonly string[], watch: (child: ChildProcess) => void = () => {}): Promise<Outcome> {
  const settings = {
    'model.embedder': 'tiny-bert',
    'paths.home': join(folder, 'home'),
    'paths.indexes': join(folder, 'indexes'),
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
  const child = spawn(process.execPath, [main, 'index', 'pull', ...args, ...flags]);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
    watch(child);
  });
  return new Promise((done) => child.on('close', (code) => done({ code, stdout, stderr })));
}

test('without consent it says what an index would take, and stops with 2', async () => {
  const outcome = await pull(['simplewiki']);
  expect(outcome).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
  expect(outcome.stdout).toMatch(/^corpus {4}Simple English Wikipedia \(CC-BY-SA-4\.0\)$/m);
  expect(outcome.stdout).toMatch(/^passages {2}about 450,000$/m);
  expect(outcome.stdout).toMatch(/^hours {5}about [\d.]+: .*measured here/m);
  expect(outcome.stdout).toMatch(/^memory {4}about [\d.]+ GB of/m);
  expect(outcome.stdout).toMatch(/^disk {6}about [\d.]+ GB while it is built/m);
  const asData = await pull(['wiki-18', '--json']);
  expect(asData.code).toBe(2);
  expect(JSON.parse(asData.stdout)).toMatchObject({
    corpus: { id: 'wiki-18' },
    reckoning: { passages: 21_000_000 },
  });
  expect(mirror.transfers).toEqual([]);
}, 120_000);

test('killed during the transfer, the same command goes on and builds the index', async () => {
  const args = ['simplewiki', '--yes', '--mirror', mirror.address];
  mirror.faults.slowMs = 100;
  const sent = (): number => mirror.transfers.at(-1)?.bytesSent ?? 0;
  const killed = await pull(args, (child) => {
    const look = setInterval(() => sent() > 1000 && child.kill('SIGKILL'), 5);
    child.once('close', () => clearInterval(look));
  });
  expect(killed.code).toBeNull();
  mirror.faults.slowMs = undefined;
  const outcome = await pull([...args, '--json']);
  expect(outcome.code).toBe(0);
  expect(mirror.transfers).toHaveLength(2);
  expect(mirror.transfers[1]?.range).toMatch(/^bytes=[1-9]\d*-$/);
  const result = JSON.parse(outcome.stdout);
  expect(result).toMatchObject({ built: true, manifest: { name: 'simplewiki', passages: { count: 54 } } });
  expect(readFileSync(result.file)).toEqual(DUMP);
  expect(readdirSync(join(folder, 'home', 'corpora', 'simplewiki'))).toHaveLength(1);
  expect((await pull(args)).stdout).toContain('simplewiki is there already: 54 passages');
}, 120_000);

test('exit code 1 for what is not there, 2 for wrong usage', async () => {
  const yes = ['--yes', '--mirror', mirror.address];
  const cases: [string[], number, string][] = [
    [['dewiki'], 1, 'enwiki, simplewiki, wiki-18'],
    [['enwiki', ...yes], 1, 'not found (status 404)'],
    [['simplewiki', ...yes, '--date', 'today'], 2, 'YYYYMMDD'],
    [[], 2, 'name'],
  ];
  for (const [args, code, message] of cases)
    expect(await pull(args)).toMatchObject({ code, stderr: expect.stringContaining(message) });
}, 120_000);
