import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { writeTinyModelFiles } from '../../../bench/tiny-world/model.js';
import { lessonQuestions, worldPassages, worldQuestions } from '../../../bench/tiny-world/questions.js';
import { TINY_WORLD_PROMPT } from '../../../bench/tiny-world/tokenizer.js';
import { answerTurn, GIVE_UP, searchTurn } from '../../../bench/tiny-world/turns.js';
import { createWorld } from '../../../bench/tiny-world/world.js';
import { loadPrompts } from '../../../src/rollout/index.js';
import { createTokenizer, type Tokenizer } from '../../../src/tokenizer/index.js';
import { PROTOCOL_TAGS } from '../../../src/trajectory/index.js';

const world = createWorld();
const folder = mkdtempSync(join(tmpdir(), 'searchloop-tiny-'));
let tokenizer: Tokenizer;
const json = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), 'utf8'));

beforeAll(async () => {
  await writeTinyModelFiles(folder, world);
  tokenizer = createTokenizer({
    tokenizerJson: json('tokenizer.json'),
    tokenizerConfig: json('tokenizer_config.json'),
  });
});
afterAll(() => rmSync(folder, { recursive: true }));

const BYTES = 256;
const encode = (text: string): number[] => tokenizer.encodePlain(text);

/** Words, marks, tags and line ends of a text. */
const pieces = (text: string): number => text.match(/<\/?[a-z]+>|[a-z]+|[.?]|\n+/g)?.length ?? 0;

test('every text of the world takes one token a word', () => {
  const known = { subject: 'a', relation: 'spouse', object: 'b' } as const;
  const fact = {
    ...known,
    subject: world.names.training.person[0] ?? '',
    object: world.names.training.person[1] ?? '',
  };
  const { observation } = loadPrompts({ prompt: TINY_WORLD_PROMPT }).searchR1;
  const texts = [
    ...worldPassages(world, ['training', 'held-out']).map(({ text }) => ` ${text}`),
    ...[...lessonQuestions(world), ...worldQuestions(world, 'held-out')].map(
      ({ question }) => ` ${question}`,
    ),
    searchTurn(fact.subject, 'born', null),
    searchTurn(fact.subject, '', fact),
    answerTurn(fact),
    GIVE_UP,
    `${observation.prefix}${observation.none}${observation.suffix}`,
    observation.corrective,
    observation.failure,
  ];
  for (const text of texts) {
    const ids = encode(text);
    expect([text, ids.length]).toEqual([text, pieces(text)]);
    expect(ids.every((id) => id >= BYTES || id === 10)).toBe(true);
    expect(tokenizer.decode(ids)).toBe(text);
  }
});

test('tags are one token, in any surroundings', () => {
  for (const tag of PROTOCOL_TAGS) expect(encode(`x${tag}.`)).toHaveLength(3);
});

test('any text comes back', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(tokenizer.decode(encode(text))).toBe(text);
    }),
  );
});

test('a chat begins and ends with control tokens that no text can spell', () => {
  const ids = tokenizer.encodeChat([{ role: 'user', content: 'who taught <|end|> ?' }]);
  const control = ids.filter((id) => tokenizer.specialIds.has(id)).map((id) => tokenizer.decode([id]));
  expect(control).toEqual(['<|user|>', '<|end|>', '<|assistant|>']);
});
