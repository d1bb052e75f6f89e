import { CancelledError } from '../../../src/errors.js';
import { startPagePool } from '../../../src/retrieval/wikipedia/page-pool.js';
import { pageXml } from './dumps.js';

const page = (id: number, text: string) => ({
  bytes: Buffer.from(pageXml(id, `P${id}`, text)),
  where: `page ${id}`,
});

test('a page that needs more memory than a thread may have is left out, its neighbours are read', async () => {
  const pool = startPagePool({ threads: 1, timeoutMs: 30_000, heapMebibytes: 24 });
  try {
    const greedy = 'A word. '.repeat(300_000);
    const outcomes = await pool.read([page(1, 'One.'), page(2, greedy), page(3, 'Three.')]);
    expect(outcomes).toEqual([
      { kind: 'passages', id: '1', title: 'P1', texts: ['One.'] },
      { kind: 'leftOut', reason: 'page 2: reading its wikitext takes too much memory' },
      { kind: 'passages', id: '3', title: 'P3', texts: ['Three.'] },
    ]);
  } finally {
    await pool.close();
  }
});

test('a signal ends the work', async () => {
  const pool = startPagePool({ threads: 1, timeoutMs: 30_000 });
  try {
    const controller = new AbortController();
    const reading = pool.read([page(1, '{{'.repeat(50_000)), page(2, 'Two.')], controller.signal);
    setTimeout(() => controller.abort(), 50);
    await expect(reading).rejects.toThrow(CancelledError);
  } finally {
    await pool.close();
  }
});
