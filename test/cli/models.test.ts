import { spawn } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from '../../src/cli/index.js';
import { importModel, verifyModel } from '../../src/model/index.js';

const root = join(__dirname, '..', '..');
const fixtures = join(root, 'test', 'fixtures');

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'models-'));
});
afterEach(() => {
  jest.restoreAllMocks();
  rmSync(home, { recursive: true, force: true });
});

const line = (args: readonly string[]): string[] => [
  'models',
  ...args,
  '--set',
  `paths.home=${JSON.stringify(home)}`,
];

interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(...args: string[]): Promise<Result> {
  const [out, err]: string[][] = [[], []];
  jest.spyOn(process.stdout, 'write').mockImplementation((text) => (out as string[]).push(String(text)) > 0);
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => (err as string[]).push(String(text)) > 0);
  try {
    const code = await runCli(line(args));
    return { code, out: (out as string[]).join(''), err: (err as string[]).join('') };
  } finally {
    jest.restoreAllMocks();
  }
}

const json = ({ out }: Result): unknown => JSON.parse(out);

test('add, list, verify and remove, for people and as data', async () => {
  const added = await run('add', join(fixtures, 'gguf', 'tiny-llama-q4_1.gguf'), '--name', 'small');
  expect(added).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^small {2}decoder llama gguf, 0\.1 MB/),
  });
  expect(json(await run('list', '--json'))).toMatchObject({
    models: [{ id: 'small', kind: 'decoder' }],
    available: ['all-minilm-l6-v2', 'smollm2-135m-instruct'],
  });
  expect(json(await run('verify', '--json'))).toEqual([{ id: 'small', faults: [] }]);
  appendFileSync(join(home, 'models', 'small', 'tokenizer.json'), ' ');
  const damaged = await run('verify');
  expect(damaged).toMatchObject({
    code: 1,
    out: expect.stringMatching(/small {2}damaged\n {2}tokenizer\.json has/),
  });
  expect(await run('remove', 'small')).toMatchObject({ code: 0, out: 'removed small\n' });
  expect(json(await run('list', '--json'))).toMatchObject({ models: [] });
});

test('a model whose GGUF file stores its rotary factors is exported as GGUF, and what is left out is said', async () => {
  await importModel(join(fixtures, 'models', 'tiny-llama-rope3'), home, { id: 'hub' });
  const [first, second] = [join(home, 'first'), join(home, 'second')];
  expect(await run('export', 'hub', '--merged', '-o', first, '--gguf', 'f32')).toMatchObject({
    code: 0,
    err: '',
  });
  await run('add', join(first, 'hub.gguf'), '--name', 'stored');
  const exported = await run('export', 'stored', '--merged', '-o', second, '--gguf', 'f32');
  expect(exported).toMatchObject({
    code: 0,
    out: expect.stringMatching(
      /^gguf .*stored\.gguf\nsafetensors +not written: .* stores its rotary factors/,
    ),
  });
  expect(readdirSync(second)).toEqual(['stored.gguf']);
  expect(readFileSync(join(second, 'stored.gguf'))).toEqual(readFileSync(join(first, 'hub.gguf')));
});

describe('what cannot be added ends in a line that says why, and an exit code', () => {
  const broken = (): string => join(home, 'broken.gguf');
  test.each([
    ['a damaged file', () => ['add', broken()], 1, /^error: .*broken\.gguf: .*\(offset \d+\)\n$/],
    ['nothing', () => ['add', 'nowhere'], 2, /^error: "nowhere" is no folder or file here/],
    [
      'an encoder without pooling',
      () => ['add', join(fixtures, 'models', 'tiny-bert')],
      2,
      /say how to pool/,
    ],
    ['a wrong choice', () => ['add', broken(), '--pooling', 'max'], 2, /Allowed choices are mean, cls/],
    ['no argument', () => ['add'], 2, /missing required argument/],
    ['an unknown name', () => ['remove', 'nothing'], 1, /^error: no model/],
    [
      'no manifest',
      () => ['pull', 'nothing'],
      1,
      /no model manifest "nothing"; there are: all-minilm-l6-v2, smollm2/,
    ],
  ])('%s', async (_name, args, code, message) => {
    cpSync(join(fixtures, 'gguf', 'bad', 'huge-string.gguf'), broken());
    expect(await run(...args())).toEqual({ code, out: '', err: expect.stringMatching(message) });
  });
});

test('killed at any moment of an import, the next one finishes it', async () => {
  const source = join(fixtures, 'models', 'tiny-llama-sharded');
  const folder = join(home, 'models', 'tiny-llama-sharded');
  /** In a process of its own, from the built project; killed when `moment` says so. */
  const addKilled = (moment: () => boolean): Promise<boolean> => {
    const child = spawn(process.execPath, [join(root, 'dist', 'main.js'), ...line(['add', source])], {
      stdio: 'ignore',
    });
    const watch = setInterval(() => moment() && child.kill('SIGKILL'), 1);
    return new Promise((resolve) =>
      child.on('close', (_code, signal) => {
        clearInterval(watch);
        resolve(signal === 'SIGKILL');
      }),
    );
  };
  const asideFiles = (): number => {
    const aside = join(home, 'models', '.partial');
    return existsSync(aside) ? readdirSync(aside, { recursive: true }).length : 0;
  };
  let killed = 0;
  for (const moment of [() => asideFiles() > 0, () => asideFiles() > 2, () => asideFiles() > 5]) {
    if (await addKilled(moment)) killed += 1;
    // Either there in whole, or not there at all.
    if (existsSync(folder)) expect(await verifyModel(home, 'tiny-llama-sharded')).toEqual([]);
  }
  expect(killed).toBeGreaterThan(0);
  await importModel(source, home);
  expect(await verifyModel(home, 'tiny-llama-sharded')).toEqual([]);
  expect(readdirSync(join(home, 'models', '.partial'))).toEqual([]);
});
