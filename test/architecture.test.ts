// Reads every import in src/ and fails on an upward or sideways import, a cycle, or a package in the wrong room.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

const root = resolve(__dirname, '..', 'src');

const FLOORS: Readonly<Record<string, number>> = {
  'main.ts': 10,
  cli: 10,
  server: 9,
  loop: 8,
  evaluation: 7,
  rollout: 6,
  training: 6,
  retrieval: 5,
  engine: 4,
  reward: 4,
  model: 3,
  trajectory: 3,
  graph: 2,
  tokenizer: 2,
  weights: 2,
  runtime: 1,
  storage: 1,
  telemetry: 1,
  config: 0,
  'errors.ts': 0,
  util: 0,
};

/** Packages that only the named rooms may import. */
const PACKAGE_ROOMS: Readonly<Record<string, readonly string[]>> = {
  'onnxruntime-node': ['runtime'],
  koffi: ['runtime'],
  piscina: ['runtime'],
  'hnswlib-node': ['retrieval'],
  express: ['server'],
  ws: ['server'],
  'better-sqlite3': ['storage'],
  'better-sqlite3-napi': ['storage'],
  pg: ['storage'],
};

function filesUnder(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return filesUnder(path);
    return path.endsWith('.ts') ? [path] : [];
  });
}

const files = filesUnder(root);
const sources = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));

const room = (file: string): string => relative(root, file).split(sep)[0] as string;

function importsOf(file: string): string[] {
  const text = sources.get(file) as string;
  const found = [...text.matchAll(/(?:^|\n)\s*(?:import|export)\b[^;'"]*?from\s*['"]([^'"]+)['"]/g)].map(
    (m) => m[1],
  );
  const bare = [...text.matchAll(/(?:^|\n)\s*import\s*['"]([^'"]+)['"]/g)].map((m) => m[1]);
  const dynamic = [...text.matchAll(/\b(?:import|require)\(\s*['"]([^'"]+)['"]\s*\)/g)].map((m) => m[1]);
  return [...found, ...bare, ...dynamic] as string[];
}

const localImports = (file: string): string[] =>
  importsOf(file)
    .filter((name) => name.startsWith('.'))
    .map((name) => resolve(dirname(file), name.replace(/\.js$/, '.ts')));

test('every room stands on a floor', () => {
  expect(files.filter((file) => !(room(file) in FLOORS)).map((file) => relative(root, file))).toEqual([]);
});

test('imports go down', () => {
  const breaches: string[] = [];
  for (const file of files)
    for (const target of localImports(file)) {
      const [from, to] = [room(file), room(target)];
      if (from === to) continue;
      const entry = from === 'main.ts' && to === 'cli';
      const ground = FLOORS[from] === 0 && FLOORS[to] === 0;
      if (!entry && !ground && !((FLOORS[to] as number) < (FLOORS[from] as number)))
        breaches.push(`${relative(root, file)} -> ${relative(root, target)}`);
    }
  expect(breaches).toEqual([]);
});

test('other rooms import a room by its index only', () => {
  const breaches: string[] = [];
  for (const file of files)
    for (const target of localImports(file)) {
      const to = room(target);
      if (room(file) === to || to === 'util' || to.endsWith('.ts')) continue;
      if (relative(root, target) !== join(to, 'index.ts'))
        breaches.push(`${relative(root, file)} -> ${relative(root, target)}`);
    }
  expect(breaches).toEqual([]);
});

test('no import cycle', () => {
  const state = new Map<string, 'open' | 'done'>();
  const cycles: string[] = [];
  const visit = (file: string, path: string[]): void => {
    if (state.get(file) === 'done' || !sources.has(file)) return;
    if (state.get(file) === 'open') {
      cycles.push([...path.slice(path.indexOf(file)), file].map((item) => relative(root, item)).join(' -> '));
      return;
    }
    state.set(file, 'open');
    for (const target of localImports(file)) visit(target, [...path, file]);
    state.set(file, 'done');
  };
  for (const file of files) visit(file, []);
  expect(cycles).toEqual([]);
});

test('packages stay in their rooms', () => {
  const breaches: string[] = [];
  for (const file of files)
    for (const name of importsOf(file))
      for (const [packageName, rooms] of Object.entries(PACKAGE_ROOMS))
        if ((name === packageName || name.startsWith(`${packageName}/`)) && !rooms.includes(room(file)))
          breaches.push(`${relative(root, file)} imports ${name}`);
  expect(breaches).toEqual([]);
});

test('the environment is read in config only', () => {
  const readers = files.filter(
    (file) => /process\.env\b/.test(sources.get(file) as string) && room(file) !== 'config',
  );
  expect(readers.map((file) => relative(root, file))).toEqual([]);
});

test('every room says what it is for', () => {
  const rooms = new Set(files.map(room).filter((name) => !name.endsWith('.ts') && name !== 'util'));
  const silent = [...rooms].filter(
    (name) => !/^\/\/ .+\n\/\/ .+\n\/\/ .+/.test(sources.get(join(root, name, 'index.ts')) ?? ''),
  );
  expect(silent).toEqual([]);
});
