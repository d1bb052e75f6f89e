import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { FileFormatError, NotFoundError, UnavailableError } from '../../src/errors.js';
import { openDatabase } from '../../src/storage/index.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-storage-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('creates folder and file, writes ahead, waits for the disk', () => {
  const path = join(folder, 'a', 'b', 'store.db');
  const database = openDatabase(path);
  expect(database.pragma('journal_mode', { simple: true })).toBe('wal');
  expect(database.pragma('synchronous', { simple: true })).toBe(2);
  expect(database.pragma('foreign_keys', { simple: true })).toBe(1);
  expect(database.pragma('busy_timeout', { simple: true })).toBe(5000);
  database.exec('create table passage (id integer primary key, text text not null) strict');
  const insert = database.prepare<[number, string]>('insert into passage values (?, ?)');
  database.transaction(() => {
    insert.run(1, 'one');
    insert.run(2, 'two');
  })();
  database.close();
  expect(readdirSync(join(folder, 'a', 'b'))).toEqual(['store.db']);

  const reader = openDatabase(path, { readonly: true });
  const rows = reader.prepare<[], { id: number; text: string }>('select * from passage order by id').all();
  expect(rows.map((row) => row.text)).toEqual(['one', 'two']);
  expect(() => reader.exec('delete from passage')).toThrow(/readonly/);
  reader.close();
});

test('options reach the connection', () => {
  const database = openDatabase(join(folder, 'fast.db'), {
    synchronous: 'NORMAL',
    busyTimeoutMs: 7,
    cacheBytes: 1 << 20,
  });
  expect(database.pragma('synchronous', { simple: true })).toBe(1);
  expect(database.pragma('busy_timeout', { simple: true })).toBe(7);
  expect(database.pragma('cache_size', { simple: true })).toBe(-1024);
  database.close();
});

test('full-text search is built in', () => {
  const database = openDatabase(':memory:');
  database.exec('create virtual table text using fts5(body)');
  database.prepare('insert into text values (?)').run('the quick brown fox');
  expect(database.prepare("select count(*) as n from text where text match 'fox'").get()).toEqual({ n: 1 });
  database.close();
});

test('what cannot be opened says why', () => {
  expect(() => openDatabase(join(folder, 'none.db'), { readonly: true })).toThrow(NotFoundError);
  const path = join(folder, 'text.db');
  writeFileSync(path, 'x'.repeat(4096));
  expect(() => openDatabase(path)).toThrow(FileFormatError);
  expect(() => openDatabase(path)).toThrow(`${path} is not a sound SQLite database`);
  expect(() => openDatabase(folder)).toThrow(UnavailableError);
});

// better-sqlite3 12 on Node.js from 24.19 on ends in an abort here.
test('statements may be collected while no code runs', () => {
  const room = pathToFileURL(join(__dirname, '..', '..', 'dist', 'storage', 'index.js')).href;
  const code = `
    const { openDatabase } = await import(${JSON.stringify(room)});
    const database = openDatabase(':memory:');
    for (let i = 0; i < 60_000; i++) database.prepare('select ' + i).get();
    await new Promise((resolve) => setTimeout(resolve, 500));
    process.stdout.write('alive');`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
  });
  expect({ stdout, stderr, status }).toEqual({ stdout: 'alive', stderr: '', status: 0 });
});
