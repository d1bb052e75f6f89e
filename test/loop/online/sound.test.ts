// What of a step is left out because it breaks an invariant, and when that ends the step.

import { IntegrityError } from '../../../src/errors.js';
import { type SoundParts, sound } from '../../../src/loop/online/sound.js';
import { makeRecord, notes, tokenizer } from '../../trajectory/store/support.js';

const told: string[] = [];
const noted: [string, string][] = [];
const parts = {
  house: {
    run: { maxSequenceTokens: 4096, maxRejectedShare: 0.5 },
    training: { tokenizer },
    onNote: (line: string) => told.push(line),
  },
  known: { note: (id: string, reason: string) => noted.push([id, reason]) },
} as unknown as SoundParts;
beforeEach(() => {
  told.length = 0;
  noted.length = 0;
});

const whole = (id: string) => ({ record: makeRecord(id), notes: notes() });
const broken = (id: string) => {
  const record = makeRecord(id);
  return { record: { ...record, lossMask: record.lossMask.map(() => 0 as const) }, notes: notes() };
};

test('rollouts that fail the audit are left out and told, up to a share', async () => {
  const kept = await sound(parts, [whole('a'), broken('b'), broken('c'), whole('d')]);
  expect(kept.map(({ record }) => record.id)).toEqual(['a', 'd']);
  expect(told).toHaveLength(2);
  expect(told[0]).toMatch(/^rollout b is not trained on: mask: /);
  expect(noted).toEqual([]);
});

test('beyond it the step fails', async () => {
  const most = () => sound(parts, [broken('a'), whole('b'), broken('c')]);
  await expect(most()).rejects.toThrow(IntegrityError);
  await expect(most()).rejects.toThrow(
    /^2 of the 3 rollouts of a step failed the audit.*\(a: mask: .*; c: mask: /,
  );
});

test('stored answers that fail are not read again, and fail no step', async () => {
  const stored = [broken('a'), broken('b')].map((item) => ({ ...item, notes: null }));
  expect((await sound(parts, [...stored, whole('c')])).map(({ record }) => record.id)).toEqual(['c']);
  expect(noted).toEqual([
    ['a', 'failed the audit'],
    ['b', 'failed the audit'],
  ]);
  // They are none of the step's own either: one of two is not beyond the share, with however many of them.
  await expect(sound(parts, [...stored, broken('c')])).rejects.toThrow(/^1 of the 1 rollouts/);
});

test('what is longer than the trainer takes is left out, and is no fault', async () => {
  const { house, known } = parts;
  const short = { known, house: { ...house, run: { ...house.run, maxSequenceTokens: 10 } } };
  expect(await sound(short, [whole('a')])).toEqual([]);
  expect(told[0]).toMatch(/has \d+ tokens, and training.maxSequenceTokens is 10/);
});
