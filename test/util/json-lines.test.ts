import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { openJsonLines, readJsonLines } from '../../src/util/json-lines.js';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lines-'));
  path = join(folder, 'deep', 'file.jsonl');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const valuesIn = async (file: string): Promise<unknown[]> => {
  const values: unknown[] = [];
  for await (const { value } of readJsonLines(file)) values.push(value);
  return values;
};

const append = async (...values: unknown[]): Promise<void> => {
  const writer = await openJsonLines(path);
  await Promise.all(values.map((value) => writer.append(value)));
  await writer.close();
};

test('what is appended is read back in order, over several openings', async () => {
  await append({ a: 1 }, 'zwei\nlines', [3]);
  await append(null, 'a\u2028b\u2029c\u0085d');
  expect(await valuesIn(path)).toEqual([{ a: 1 }, 'zwei\nlines', [3], null, 'a\u2028b\u2029c\u0085d']);
});

test('a line that a kill cut off anywhere is passed over, and gone after the next append', async () => {
  const long = { text: 'é'.repeat(40_000) };
  await append({ a: 1 }, long);
  const whole = await readFile(path);
  const second = whole.indexOf(10) + 1;
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: second + 1, max: whole.length - 2 }), async (cut) => {
      await writeFile(path, whole.subarray(0, cut));
      expect(await valuesIn(path)).toEqual([{ a: 1 }]);
      await append({ b: 2 });
      expect(await valuesIn(path)).toEqual([{ a: 1 }, { b: 2 }]);
    }),
    { numRuns: 20 },
  );
});

test('a whole last line that lacks only its line break counts', async () => {
  await append({ a: 1 });
  await appendFile(path, '{"b":2}');
  expect(await valuesIn(path)).toEqual([{ a: 1 }, { b: 2 }]);
  await append({ c: 3 });
  expect(await valuesIn(path)).toEqual([{ a: 1 }, { b: 2 }, { c: 3 }]);
});

test('damage in the middle is an error that names the line', async () => {
  await append({ a: 1 });
  await appendFile(path, 'no json\n{"b":2}\n');
  await expect(valuesIn(path)).rejects.toThrow(/file\.jsonl, line 2: expected JSON/);
});

test('an empty file has no values; a missing one is an error of the file system', async () => {
  await append();
  expect(await valuesIn(path)).toEqual([]);
  await expect(valuesIn(`${path}x`)).rejects.toThrow(/ENOENT/);
});
