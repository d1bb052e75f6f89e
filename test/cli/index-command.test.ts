import type { ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { importModel } from '../../src/model/index.js';
import type { IndexManifest } from '../../src/retrieval/index.js';
import { type Outcome, runBuilt } from './support/built-cli.js';

const fixtures = resolve(__dirname, '..', 'fixtures');
const WORDS = 'river lake mountain city king queen poem war peace treaty bridge tower ship captain'.split(
  ' ',
);

let folder = '';
let home = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'searchloop-index-command-'));
  home = join(folder, 'home');
  await importModel(join(fixtures, 'models', 'tiny-bert'), home, {
    id: 'tiny-bert',
    embedder: { pooling: 'mean', normalise: true, maxTokens: 48 },
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the built command line; `watch` sees it while it runs. */
function run(
  args: readonly string[],
  watch: (child: ChildProcess, stderr: string) => void = () => {},
): Promise<Outcome> {
  const settings = {
    'model.embedder': 'tiny-bert',
    'paths.home': home,
    'paths.indexes': join(folder, 'indexes'),
  };
  return runBuilt(['index', ...args], settings, (child, { stderr }) => watch(child, stderr));
}

function writeCorpus(name: string, count: number): string {
  const lines = Array.from({ length: count }, (_, i) => {
    const text = Array.from({ length: 6 }, (_unused, at) => WORDS[(i * (at + 3) + at) % WORDS.length]).join(
      ' ',
    );
    return JSON.stringify({ id: `p${i}`, contents: `"Title ${i}"\n${text} ${i}` });
  });
  const path = join(folder, name);
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

const built = (outcome: Outcome): IndexManifest => {
  if (outcome.code !== 0) throw new Error(`exit code ${outcome.code}: ${outcome.stderr}`);
  return JSON.parse(outcome.stdout).manifest;
};
const sameIndex = (manifest: IndexManifest) => ({
  snapshotId: manifest.snapshotId,
  contentDigest: manifest.passages.contentDigest,
  graph: manifest.graph.sha256,
});

test('killed at any stage, the same command goes on and makes the same index', async () => {
  const input = writeCorpus('kill.jsonl', 2500);
  const output = join(folder, 'killed');
  const args = ['build', '--input', input, '--output', output];
  const whole = built(await run([...args.slice(0, 3), '--output', join(folder, 'whole'), '--json']));
  const vectors = join(output, 'building', 'vectors.f32');
  const vectorBytes = (): number => (existsSync(vectors) ? statSync(vectors).size : 0);
  const moments: ((stderr: string) => boolean)[] = [
    (stderr) => stderr.includes('read:'),
    (stderr) => stderr.includes('embed:') && vectorBytes() === 0,
    (stderr) => stderr.includes('embed:') && vectorBytes() >= 1024 * 64 * 4,
    (stderr) => stderr.includes('graph:'),
  ];
  let kept = 0;
  for (const moment of moments) {
    const timer = { stop: () => {} };
    const outcome = await run(args, (child, stderr) => {
      timer.stop();
      const look = setInterval(() => moment(stderr) && child.kill('SIGKILL'), 1);
      timer.stop = () => clearInterval(look);
    });
    timer.stop();
    expect(outcome.code).toBeNull();
    expect(existsSync(join(output, 'manifest.json'))).toBe(false);
    expect(vectorBytes()).toBeGreaterThanOrEqual(kept);
    kept = vectorBytes();
  }
  const resumed = await run([...args, '--json']);
  expect(sameIndex(built(resumed))).toEqual(sameIndex(whole));
  expect(readdirSync(output)).toHaveLength(3);
  expect((await run(['verify', output])).code).toBe(0);
}, 240_000);

test('Ctrl-C ends with 130, and the same command goes on', async () => {
  const input = writeCorpus('interrupt.jsonl', 2500);
  const args = ['build', '--input', input, '--output', join(folder, 'interrupted')];
  let sent = false;
  const stopped = await run(args, (child, stderr) => {
    if (!sent && stderr.includes('embed:')) sent = child.kill('SIGINT');
  });
  expect(stopped.code).toBe(130);
  expect(stopped.stderr).toContain('run the same command again');
  expect(built(await run([...args, '--json'])).passages.count).toBe(2500);
}, 120_000);

test('build, list, info, search, add, remove', async () => {
  const input = writeCorpus('small.jsonl', 40);
  const first = built(await run(['build', '--input', input, '--name', 'small', '--json']));
  expect(first.name).toBe('small');
  expect((await run(['list'])).stdout).toMatch(/^small: 40 passages, tiny-bert \(64\)/);
  expect((await run(['info', 'small'])).stdout).toContain(first.snapshotId);
  const found = async (...args: string[]) =>
    JSON.parse((await run(['search', '-i', 'small', '--json', ...args])).stdout);
  expect((await found('Title', '7', '--kind', 'bm25', '-k', '1')).passages).toMatchObject([
    { id: 'p7', title: 'Title 7' },
  ]);
  expect((await found('river', 'lake')).passages).toHaveLength(3);
  const more = join(folder, 'more.jsonl');
  writeFileSync(more, '{"id": "new", "title": "Zebra", "text": "zebra giraffe"}\n');
  expect(JSON.parse((await run(['add', '--input', more, '-i', 'small', '--json'])).stdout)).toMatchObject({
    added: 1,
    passageCount: 41,
  });
  expect((await found('Zebra zebra giraffe', '-k', '1')).passages[0].id).toBe('new');
  expect((await run(['remove', 'new', 'p0', '-i', 'small'])).stdout).toContain('removed 2');
  expect((await found('giraffe', '--kind', 'bm25')).passages).toEqual([]);
}, 120_000);

test('exit codes: 2 for wrong usage and bad input, 1 for an index that cannot be used', async () => {
  const cases: [string[], number, string][] = [
    [['build'], 2, '--input'],
    [['build', '--input', join(folder, 'x.jsonl')], 2, '--name or --output'],
    [['build', '--input', join(folder, 'x.jsonl'), '--name', 'x'], 1, 'no such file'],
    [['build', '--input', join(folder, 'x.jsonl'), '--name', 'demo'], 2, 'comes with the product'],
    [['build', '--input', join(folder, 'x.jsonl'), '--name', 'x', '--m', '1'], 2, 'at least 2'],
    [['build', '--input', join(folder, 'x.jsonl'), '--name', 'x', '--m', '10001'], 2, 'at most 10000'],
    [['search', 'x', '-k', '0', '-i', 'none'], 2, 'whole number'],
    [['search', 'x', '-i', 'none'], 1, 'no folder'],
    [['info', 'none'], 1, 'no folder'],
    [['verify', 'none'], 1, 'no folder'],
  ];
  const bad = join(folder, 'bad.jsonl');
  writeFileSync(bad, '{"id": "1", "text": "fine"}\nnonsense\n');
  cases.push([['build', '--input', bad, '--name', 'bad'], 2, 'bad.jsonl:2: expected one JSON object']);
  const outcomes = await Promise.all(cases.map(([args]) => run(args)));
  expect(outcomes.map(({ code }) => code)).toEqual(cases.map(([, code]) => code));
  for (const [i, [, , message]] of cases.entries()) expect(outcomes[i]?.stderr).toContain(message);
  expect(existsSync(join(folder, 'indexes', 'bad'))).toBe(false);
}, 120_000);

test('after a build it is said how a server finds the index; what is unknown cannot be removed', async () => {
  const input = writeCorpus('three.jsonl', 3);
  const inside = await run(['build', '--input', input, '--name', 'three']);
  expect(inside.stdout).toContain(`3 passages, tiny-bert (64), ${join(folder, 'indexes', 'three')}\n`);
  expect(inside.stdout).toMatch(/--set retrieval\.index=three\n$/);
  const place = join(folder, 'elsewhere');
  const outside = await run(['build', '--input', input, '--output', place]);
  expect(outside.stdout).toContain(`--set retrieval.index=${place}\n`);
  const found = await run([
    'search',
    'river',
    '--kind',
    'bm25',
    '--json',
    '--set',
    `retrieval.index=${place}`,
  ]);
  expect(JSON.parse(found.stdout).index).toMatchObject({ name: 'elsewhere', passageCount: 3 });

  const some = await run(['remove', 'nope', 'p0', 'p1', '-i', place]);
  expect(some).toMatchObject({ code: 1, stdout: 'removed 2; index "elsewhere" has 1 passage\n' });
  expect(some.stderr).toBe('error: index "elsewhere" has no passage "nope"\n');
  expect(await run(['remove', 'p1', '-i', place])).toMatchObject({ code: 1, stdout: '' });
}, 120_000);

test('a damaged index is refused by search and verify', async () => {
  const input = writeCorpus('damaged.jsonl', 10);
  const manifest = built(await run(['build', '--input', input, '--name', 'damaged', '--json']));
  const place = join(folder, 'indexes', 'damaged');
  cpSync(input, join(place, manifest.graph.file));
  for (const args of [
    ['search', 'river', '-i', 'damaged'],
    ['verify', 'damaged'],
  ]) {
    const outcome = await run(args);
    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toContain(manifest.graph.file);
  }
}, 120_000);
