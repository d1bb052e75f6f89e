// npm run bench -- fuzz --url http://127.0.0.1:8000 [--count 10000] [--seed 1] [--concurrency 8] [--timeout 120]
// Fires fuzzed bodies at both POST routes of a running server: no 5xx, no hang, no broken answer.

import { parseArgs } from 'node:util';
import { fireFuzz } from './fuzz/fire.js';
import { note, printReport } from './report.js';

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      url: { type: 'string', default: 'http://127.0.0.1:8000' },
      count: { type: 'string', default: '10000' },
      seed: { type: 'string', default: '1' },
      concurrency: { type: 'string', default: '8' },
      timeout: { type: 'string', default: '120' },
    },
  });
  const count = Number(values.count);
  const { statuses, faults } = await fireFuzz({
    url: values.url.replace(/\/$/, ''),
    count,
    seed: Number(values.seed),
    concurrency: Number(values.concurrency),
    timeoutMs: 1000 * Number(values.timeout),
    onProgress: (done) => {
      if (done % 500 === 0) note(`${done} of ${count}`);
    },
  });
  for (const fault of faults.slice(0, 20))
    note(`${fault.kind} at case ${fault.index} of ${fault.path}: ${fault.detail}`);
  const ofKind = (...kinds: string[]) => faults.filter((fault) => kinds.includes(fault.kind)).length;
  printReport('fuzz', [
    { name: 'bodies', value: count, unit: 'bodies', goal: null },
    { name: 'answered with 200', value: statuses[200] ?? 0, unit: 'bodies', goal: { least: 1 } },
    { name: 'refused with 4xx', value: sumOf(statuses, 400, 499), unit: 'bodies', goal: { least: 1 } },
    { name: '5xx', value: ofKind('server error'), unit: 'bodies', goal: { most: 0 } },
    { name: 'hangs', value: ofKind('hang'), unit: 'bodies', goal: { most: 0 } },
    {
      name: 'other faults',
      value: faults.length - ofKind('server error', 'hang'),
      unit: 'bodies',
      goal: { most: 0 },
    },
  ]);
  return faults.length === 0 ? 0 : 1;
}

function sumOf(statuses: Readonly<Record<number, number>>, least: number, most: number): number {
  return Object.entries(statuses)
    .filter(([status]) => Number(status) >= least && Number(status) <= most)
    .reduce((sum, [, count]) => sum + count, 0);
}
