import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { gateSlices, isHeldOut, questionKey } from '../../../../src/loop/online/gate/questions.js';
import { sha256Hex } from '../../../../src/util/digest.js';

test('the same question is on the same side however it is written', () => {
  const key = questionKey('Who wrote  Faust?');
  for (const other of ['who wrote faust', ' WHO WROTE FAUST ?', 'Who\nwrote Faust??'])
    expect(questionKey(other)).toBe(key);
  expect(questionKey('Who wrote Fausts?')).not.toBe(key);
});

test('of marks and spaces only those at the end do not count', () => {
  const unit = fc.constantFrom(' ', '\n', '\u3000', '\ufeff', '?', '.', '!', 'a', 'É', '？', '…', '😀');
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 12 }), (question) => {
      const spaced = question.normalize('NFKC').toLowerCase().replace(/\s+/gu, ' ').trim();
      const text = spaced.replace(/[\s?.!]+$/u, '');
      expect(questionKey(question)).toBe(sha256Hex(text).slice(0, 32));
    }),
  );
});

test('a long run of marks costs no more than its length', () => {
  const ask = () => questionKey(`${'.'.repeat(2_000_000)}x`);
  // Square in its length it would be an hour.
  expect(runInNewContext('ask()', { ask }, { timeout: 120_000 })).toHaveLength(32);
});

test('a tenth is held out', () => {
  const held = Array.from({ length: 5000 }, (_, i) => isHeldOut(questionKey(`question ${i}`))).filter(
    Boolean,
  );
  expect(held.length / 5000).toBeGreaterThan(0.085);
  expect(held.length / 5000).toBeLessThan(0.115);
});

const pool = Array.from({ length: 25 }, (_, i) => ({
  key: `k${i}`,
  messages: [{ role: 'user', content: `q${i}` }],
  goldenAnswers: ['a'],
}));
const keys = (list: readonly { key: string }[]) => new Set(list.map(({ key }) => key));

test('a working set stays as it is while more labels come, and fresh questions never met a candidate', () => {
  const first = gateSlices(pool, new Set(), new Set(), 10);
  expect([first.working.length, first.fresh.length]).toEqual([10, 15]);
  const working = keys(first.working);
  for (const { key } of first.fresh) expect(working.has(key)).toBe(false);
  const later = gateSlices([...pool, { ...pool[0]!, key: 'new' }], new Set(), working, 10);
  expect(keys(later.working)).toEqual(working);
  const used = working;
  const second = first.fresh.slice(0, 10);
  const next = gateSlices(pool, used, keys(second), 10);
  expect(keys(next.working)).toEqual(keys(second));
  expect(next.fresh).toHaveLength(5);
  for (const { key } of next.fresh) expect(used.has(key)).toBe(false);
});

test('too few questions: all of them, once each', () => {
  const { working, fresh } = gateSlices([...pool, ...pool], new Set(), new Set(), 40);
  expect(working).toHaveLength(25);
  expect(fresh).toEqual([]);
});
