import { Findings, remembering } from '../../../src/loop/online/findings.js';

test('distance holds for some candidates from the one it was measured from, what a record is holds for all', () => {
  const findings = new Findings(async () => new Set());
  const known = findings.under('v1');
  known.note('far', 'too far from the present policy');
  known.note('failed', 'a step with it failed');
  known.note('forced', 'answer was forced');
  expect(known.against('far')).toBe('too far from the present policy');
  expect(known.against('other')).toBeNull();
  let later = findings.under('v2');
  expect(later.against('failed')).toBeNull();
  for (let n = 3; n < 9; n++) later = findings.under(`v${n}`);
  expect(later.against('far')).toBe('too far from the present policy');
  later = findings.under('v9');
  expect(later.against('far')).toBeNull();
  expect(later.against('forced')).toBe('answer was forced');
  findings.forget('forced');
  expect(later.against('forced')).toBeNull();
});

test('a distance is measured anew when training goes back', () => {
  const findings = new Findings(async () => new Set());
  findings.under('v1');
  findings.under('v2').note('far', 'too far from the present policy');
  expect(findings.under('v2').against('far')).not.toBeNull();
  expect(findings.under('v3').against('far')).not.toBeNull();
  expect(findings.under('v1').against('far')).toBeNull();
});

test('a step that reads more than is kept remembers all of it', () => {
  const known = remembering(new Findings(async () => new Set(), 2).under('v1'));
  for (const id of ['a', 'b', 'c']) known.note(id, 'answer was forced');
  expect(['a', 'b', 'c', 'd'].map((id) => known.against(id) !== null)).toEqual([true, true, true, false]);
});

test('what a step was made of is known from the store and from then on', async () => {
  const findings = new Findings(async () => new Set(['a']));
  const known = findings.under('v1');
  expect(known.against('a')).toBeNull();
  await findings.open();
  findings.use(['b']);
  await findings.open();
  expect(['a', 'b', 'c'].map((id) => known.against(id))).toEqual([
    'trained on before',
    'trained on before',
    null,
  ]);
});

test('those of which something was noted are looked at last', () => {
  const known = new Findings(async () => new Set()).under('v1');
  known.note('b', 'too far from the present policy');
  expect(known.ordered(['a', 'b', 'c'], (id) => [id])).toEqual(['a', 'c', 'b']);
});

test('memory is bounded: the oldest findings go', () => {
  const known = new Findings(async () => new Set(), 2).under('v1');
  for (const id of ['a', 'b', 'a', 'c']) known.note(id, 'answer was forced');
  expect(['a', 'b', 'c'].map((id) => known.against(id) !== null)).toEqual([true, false, true]);
});
