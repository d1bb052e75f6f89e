import { join } from 'node:path';
import fc from 'fast-check';
import { IntegrityError } from '../../../src/errors.js';
import { type PassageInput, PassageStore } from '../../../src/retrieval/passages/passage-store.js';
import { openDatabase } from '../../../src/storage/index.js';
import { useTemporaryFolder } from '../support/folders.js';

const folder = useTemporaryFolder();

const passages: PassageInput[] = [
  { id: 'a', title: 'Iliad', text: 'The Iliad is an epic poem about the siege of Troy.' },
  { id: 'b', title: 'Odyssey', text: 'The Odyssey tells of a long journey home from Troy.' },
  { id: 'c', title: 'Zürich', text: 'A city by a lake. Its rivers are the Limmat and the Sihl.' },
];

function open(input: readonly PassageInput[] = passages): PassageStore {
  const path = join(folder(), 'passages.sqlite');
  const store = new PassageStore(openDatabase(path), path);
  input.forEach((passage, label) => void store.insert(label, passage));
  store.setMeta('nextLabel', String(input.length));
  store.setMeta('count', String(input.length));
  store.setSnapshot(0, 'first');
  return store;
}

const ids = (store: PassageStore, query: string, k = 10): string[] =>
  store.byLabels(store.bm25(query, k).map(({ label }) => label)).map(({ id }) => id);

test('BM25 finds by words of title and text, folds case, accents and endings, best first', () => {
  const store = open();
  expect(ids(store, 'Which poem tells of Troy?').sort()).toEqual(['a', 'b']);
  expect(ids(store, 'zurich')).toEqual(['c']);
  expect(ids(store, 'river')).toEqual(['c']);
  expect(ids(store, 'epic poem')[0]).toBe('a');
  expect(ids(store, 'nothing matches qqq')).toEqual([]);
  expect(ids(store, '')).toEqual([]);
  const scores = store.bm25('epic siege Troy', 3).map(({ score }) => score);
  expect(scores.every((score) => score > 0)).toBe(true);
  expect(scores).toEqual([...scores].sort((a, b) => b - a));
  expect(ids(store, 'Troy', 1)).toHaveLength(1);
  store.close();
});

test('query syntax of FTS5 in a question is plain text', () => {
  const store = open();
  for (const query of [
    'title:Iliad NOT Troy',
    '"Troy',
    'Troy*',
    'NEAR(Troy home, 1)',
    'Troy) OR (',
    "Troy'; DROP TABLE passages;--",
  ])
    expect(ids(store, query).length).toBeGreaterThan(0);
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      store.bm25(`${text} Troy ${text}`, 3);
      store.bm25(text, 3);
    }),
  );
  expect(store.countRows()).toEqual({ passages: 3, indexed: 3 });
  store.close();
});

test('a change commits passages, vectors, count and snapshot together, and full text follows', () => {
  const store = open();
  const vector = Float32Array.of(1, 2);
  const added = { passage: { id: 'd', title: 'Aeneid', text: 'Aeneas leaves Troy for Italy.' }, vector };
  expect(store.change([added], ['b', 'unknown'])).toEqual({ added: 1, removed: 1 });
  expect(store.count).toBe(3);
  expect(store.countRows()).toEqual({ passages: 3, indexed: 3 });
  expect(store.revision).toBe(1);
  expect(store.snapshotId).not.toBe('first');
  expect(store.snapshotAt(0)).toBe('first');
  expect(ids(store, 'Troy').sort()).toEqual(['a', 'd']);
  expect(ids(store, 'Odyssey')).toEqual([]);
  expect(store.changesAfter(0)).toEqual([
    { revision: 1, label: 1, vector: null },
    { revision: 1, label: 3, vector },
  ]);
  store.close();
});

test('an id that is there gets new content under a new label; nothing to do changes no snapshot', () => {
  const store = open();
  const vector = Float32Array.of(1, 0);
  const twice = ['first try', 'second try'].map((text) => ({
    passage: { id: 'a', title: 'A', text },
    vector,
  }));
  store.change(twice, []);
  expect(store.count).toBe(3);
  expect(store.countRows()).toEqual({ passages: 3, indexed: 3 });
  expect(store.byLabels([0, 3])).toEqual([]);
  expect(store.byLabels([4])[0]?.text).toBe('second try');
  expect(ids(store, 'try')).toEqual(['a']);
  const before = store.snapshotId;
  expect(store.change([], ['unknown'])).toEqual({ added: 0, removed: 0 });
  expect(store.snapshotId).toBe(before);
  store.change([], ['a']);
  store.change([{ passage: { id: 'a', title: 'A', text: 'again' }, vector }], []);
  expect(store.labelOf('a')).toBe(5);
  store.close();
});

test('the same changes give the same snapshot, other changes another', () => {
  const snapshots = ['x', 'x', 'y'].map((text) => {
    const path = join(folder(), `${Math.random()}.sqlite`);
    const store = new PassageStore(openDatabase(path), path);
    store.setSnapshot(0, 'first');
    store.change([{ passage: { id: 'n', title: '', text }, vector: Float32Array.of(1) }], []);
    const { snapshotId } = store;
    store.close();
    return snapshotId;
  });
  expect(snapshots[0]).toBe(snapshots[1]);
  expect(snapshots[0]).not.toBe(snapshots[2]);
});

test('the content digest depends on every passage and its order', async () => {
  const inputs = [passages, [...passages].reverse(), passages.slice(1)].map(async (input, i) => {
    const path = join(folder(), `${i}.sqlite`);
    const store = new PassageStore(openDatabase(path), path);
    input.forEach((passage, label) => void store.insert(label, passage));
    const digest = await store.contentDigest();
    store.close();
    return digest;
  });
  expect(new Set(await Promise.all(inputs)).size).toBe(3);
});

test('a finished store is one file that opens without write access', () => {
  const store = open();
  store.optimise();
  store.close();
  const path = join(folder(), 'passages.sqlite');
  const reader = new PassageStore(openDatabase(path, { readonly: true }), path);
  expect(ids(reader, 'Iliad')).toEqual(['a']);
  reader.close();
});

test('a database of another kind or version is refused', () => {
  const path = join(folder(), 'other.sqlite');
  const db = openDatabase(path);
  db.exec('CREATE TABLE something (x)');
  expect(() => new PassageStore(db, path)).toThrow(IntegrityError);
  db.pragma('user_version = 99');
  expect(() => new PassageStore(db, path)).toThrow(/version 1, came 99/);
  db.close();
});
