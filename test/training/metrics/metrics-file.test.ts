import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readMetrics } from '../../../src/training/index.js';
import { openMetricsFile } from '../../../src/training/metrics/metrics-file.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-metrics-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a run that goes on takes back what later rows say, and a line that was cut', async () => {
  const path = join(folder, 'metrics.jsonl');
  const first = await openMetricsFile(path, 0);
  for (const step of [1, 2, 3]) await first.append({ step, loss: 1 / step });
  await first.close();
  appendFileSync(path, '{"step":4,"lo');
  expect((await readMetrics(path)).map(({ step }) => step)).toEqual([1, 2, 3]);
  const second = await openMetricsFile(path, 2);
  await second.append({ step: 3, loss: 7 });
  await second.close();
  expect(await readMetrics(path)).toEqual([
    { step: 1, loss: 1 },
    { step: 2, loss: 0.5 },
    { step: 3, loss: 7 },
  ]);
  expect(readFileSync(path, 'utf8').endsWith('}\n')).toBe(true);
});

test('a row without a step is told with its line', async () => {
  const path = join(folder, 'wrong.jsonl');
  writeFileSync(path, '{"step":1}\n{"loss":1}\n');
  await expect(readMetrics(path)).rejects.toThrow(/line 2: expected an object with a number "step"/);
  expect(await readMetrics(join(folder, 'none.jsonl'))).toEqual([]);
});
