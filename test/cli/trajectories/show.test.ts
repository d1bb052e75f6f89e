// What is shown of a stored answer, token for token.

import { styleText } from 'node:util';
import { colouredText, tokenTable } from '../../../src/cli/trajectories/show.js';
import type { TrajectoryRecord } from '../../../src/trajectory/index.js';
import { makeRecord, tokenizer } from '../../trajectory/store/support.js';

const base = makeRecord('a');
const prompt = base.origin.filter((origin) => origin === 'prompt').length;
const record: TrajectoryRecord = {
  ...base,
  origin: base.origin.map((origin, at) => (at === prompt + 2 ? 'policyInformation' : origin)),
  samplingLogprobs: base.samplingLogprobs.map((_, at) => -at / 100),
  versions: [
    { start: 0, end: prompt + 4, adapterVersion: 'first-version-of-all' },
    { start: prompt + 4, end: base.tokenIds.length, adapterVersion: 'second' },
  ],
};
const isSampled = (at: number): boolean =>
  record.origin[at] === 'policy' || record.origin[at] === 'policyInformation';

const tty = Object.getOwnPropertyDescriptor(process.stdout, 'isTTY');
const onTerminal = (isTTY: boolean): void =>
  void Object.defineProperty(process.stdout, 'isTTY', { value: isTTY, configurable: true });
beforeEach(() => onTerminal(false));
afterAll(() => {
  if (tty === undefined) Reflect.deleteProperty(process.stdout, 'isTTY');
  else Object.defineProperty(process.stdout, 'isTTY', tty);
});

test('a row for each token: place, id, origin, mask, both log-probabilities and version where it was sampled', () => {
  const [header, ...rows] = tokenTable(record, tokenizer).split('\n');
  expect(header?.trim().split(/ +/)).toEqual([
    'at',
    'id',
    'origin',
    'm',
    'logprob',
    'sampling',
    'version',
    'text',
  ]);
  const expected = record.tokenIds.map((id, at) => {
    const version = at < prompt + 4 ? 'first-versio' : 'second';
    const numbers = isSampled(at)
      ? [record.logprobs[at]?.toFixed(4), record.samplingLogprobs[at]?.toFixed(4), version]
      : ['', '', ''];
    return [at, id, record.origin[at], record.lossMask[at], ...numbers].map(String);
  });
  // Columns of a fixed width.
  const found = rows.map((row) =>
    [
      [0, 5],
      [6, 13],
      [14, 31],
      [32, 33],
      [34, 43],
      [44, 53],
      [54, 66],
    ].map(([from, to]) => row.slice(from, to).trim()),
  );
  expect(found).toEqual(expected);
  const texts = rows.map((row) => JSON.parse(row.slice(67)) as string);
  expect(texts.slice(0, prompt).join('')).toContain('capital of France?');
  // Where the tokenizer is not ours, the tokens have no text.
  expect(tokenTable(record, null).split('\n')[1]?.slice(67)).toBe('');
});

test('each stretch of one origin by itself, named, or in the colour that names it in the table', () => {
  const stretches = colouredText(record, tokenizer).split(/\n(?=\[\w+\] )/);
  expect(stretches.map((text) => /^\[(\w+)\]/.exec(text)?.[1])).toEqual([
    'prompt',
    'policy',
    'policyInformation',
    'policy',
    'environment',
    'policy',
  ]);
  const origins = record.origin.filter((origin, at) => origin !== record.origin[at - 1]);
  expect(origins).toHaveLength(6);
  expect(stretches[4]).toContain('<information>');
  expect(stretches[5]).toContain('<answer>Paris</answer>');
  expect(colouredText(record, null)).toContain(`[prompt] ${record.tokenIds.slice(0, prompt).join(' ')}\n`);

  onTerminal(true);
  const table = tokenTable(record, tokenizer).split('\n').slice(1);
  const colours = {
    prompt: 'gray',
    policy: 'green',
    policyInformation: 'yellow',
    environment: 'cyan',
  } as const;
  for (const [at, origin] of record.origin.entries()) {
    const text = JSON.stringify(Buffer.from(tokenizer.tokenBytes(record.tokenIds[at] as number)).toString());
    expect(table[at]?.endsWith(styleText(colours[origin], text))).toBe(true);
  }
  expect(colouredText(record, null)).toContain(
    styleText('cyan', record.tokenIds.filter((_, at) => record.origin[at] === 'environment').join(' ')),
  );
});

test('what was stored does not steer the terminal', () => {
  const ids = tokenizer.encodePlain('a\u001b[2Jb\u0007\n\tc\u009b');
  const wicked = { ...record, tokenIds: ids, origin: ids.map(() => 'policy' as const) };
  expect(colouredText(wicked, tokenizer)).toBe('[policy] a\ufffd[2Jb\ufffd\n\tc\ufffd');
});
