import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { z } from 'zod';
import { FileFormatError } from '../../src/errors.js';
import {
  jsonObject,
  readJsonFile,
  readJsonFileIfAny,
  readJsonFileSync,
  writeJsonFile,
} from '../../src/util/json-file.js';
import { parsedJsonLines, writeJsonLines } from '../../src/util/json-lines.js';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'json-file-'));
  path = join(folder, 'file.json');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const point = z.strictObject({ at: z.strictObject({ x: z.number() }) });

test('what is written is read back', async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ noUnicodeString: false }), async (value) => {
      await writeJsonFile(path, value);
      const plain: unknown = JSON.parse(JSON.stringify(value));
      expect(await readJsonFile(path, z.unknown())).toEqual(plain);
      expect(readJsonFileSync(path, z.unknown())).toEqual(plain);
    }),
    { numRuns: 20 },
  );
});

test.each([
  ['a cut-off file', '{"at": {', point, /file\.json: expected JSON: /],
  ['a wrong field', '{"at": {"x": "1"}}', point, /file\.json: .*number[\s\S]*at\.x/],
  ['a key that nobody knows', '{"at": {"x": 1}, "b": 2}', point, /file\.json: .*"b"/],
  ['a list', '[1]', jsonObject, /file\.json: .*expected a JSON object/],
  ['nothing', 'null', jsonObject, /file\.json: .*expected a JSON object/],
])('%s is refused with the name of the file', async (_name, text, schema, message) => {
  writeFileSync(path, text);
  for (const read of [readJsonFile, readJsonFileIfAny]) {
    const failed = read<unknown>(path, schema);
    await expect(failed).rejects.toThrow(FileFormatError);
    await expect(failed).rejects.toThrow(message);
  }
  expect(() => readJsonFileSync<unknown>(path, schema)).toThrow(message);
});

test('a file that is not there is null where that may be, and else what the disk says', async () => {
  expect(await readJsonFileIfAny(path, point)).toBeNull();
  await expect(readJsonFile(path, point)).rejects.toMatchObject({ code: 'ENOENT', path });
  writeFileSync(path, '{}');
  expect(await readJsonFileIfAny(join(path, 'below'), point)).toBeNull();
  await expect(readJsonFileIfAny(folder, point)).rejects.toMatchObject({ code: 'EISDIR' });
});

test('lines are checked one by one', async () => {
  await writeJsonLines(path, [{ at: { x: 1 } }, { at: { x: 2 } }, { at: {} }]);
  const found: number[] = [];
  const reading = (async () => {
    for await (const { at } of parsedJsonLines(path, point)) found.push(at.x);
  })();
  await expect(reading).rejects.toThrow(/file\.json, line 3: [\s\S]*at\.x/);
  expect(found).toEqual([1, 2]);
});
