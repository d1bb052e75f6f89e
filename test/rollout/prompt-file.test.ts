import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { configSchema } from '../../src/config/index.js';
import { createRolloutRunner, loadPrompts } from '../../src/rollout/index.js';
import { placePassages } from '../../src/rollout/passages.js';
import { fillTemplate, parsePrompt } from '../../src/rollout/prompt-file.js';
import { sha256Hex } from '../../src/util/digest.js';
import { createPieceTokenizer } from '../support/piece-tokenizer.js';
import { createScriptedGenerator, scriptOf } from '../support/scripted-generator.js';

const file = join(__dirname, '..', '..', 'config', 'prompts', 'search-r1.yaml');
const text = readFileSync(file, 'utf8');

test('the digest is that of the file’s bytes', () => {
  expect(loadPrompts({ prompt: 'search-r1' }).searchR1.digest).toBe(sha256Hex(text));
  expect(loadPrompts({ prompt: file }).searchR1.digest).toBe(sha256Hex(text));
});

test('texts are used byte for byte', () => {
  const yaml = [
    'method: search-r1',
    'instruction: "  Ask\\u00a0{question}\\t\\n "',
    'observation:',
    '  prefix: "\\n\\n<information>"',
    '  passage: "Doc {index}(Title: {title}) {text}\\n"',
    '  passageWords: 3',
    '  none: " "',
    '  suffix: "</information>\\n\\n"',
    '  corrective: "c"',
    '  failure: "f"',
    '  budget: ""',
    '  forcedAnswer: "\\n<answer>"',
    '  noAnswer: "n"',
  ].join('\n');
  const prompt = parsePrompt('search-r1', yaml, 'x.yaml');
  expect(prompt.instruction).toBe('  Ask\u00a0{question}\t\n ');
  const { observation: form } = prompt;
  const placed = placePassages([{ id: 'a', title: 'T', text: ' one  two\nthree four ', score: 1 }], {
    tokenizer: createPieceTokenizer(),
    form,
    prefix: form.prefix,
    suffix: form.suffix,
    limit: 100,
  });
  expect(placed?.text).toBe('\n\n<information>Doc 1(Title: T)  one  two\nthree\n</information>\n\n');
});

test('values are put in once: a hole inside a value stays', () => {
  expect(fillTemplate('{a}-{b}-{c}', { a: '{b}', b: '$& {a}' })).toBe('{b}-$& {a}-{c}');
});

describe('a file that is not valid says where', () => {
  const change = (edit: (value: Record<'observation', Record<string, unknown>>) => void): string => {
    const value = parse(text);
    edit(value);
    return JSON.stringify(value);
  };
  test.each([
    ['an unknown key', change((v) => Object.assign(v.observation, { prefx: 'x' })), /prefx/],
    ['a missing text', change((v) => delete v.observation.failure), /failure/],
    [
      'no hole for the question',
      change((v) => Object.assign(v, { instruction: 'x' })),
      /\{question\} exactly once/,
    ],
    [
      'two holes for the question',
      change((v) => Object.assign(v, { instruction: '{question}{question}' })),
      /exactly once/,
    ],
    [
      'a forced answer that opens none',
      change((v) => Object.assign(v.observation, { forcedAnswer: 'x' })),
      /<answer>/,
    ],
    [
      'another method',
      change((v) => Object.assign(v, { method: 'direct', observation: undefined })),
      /observation|method/,
    ],
    ['no YAML', 'a: [', /not YAML/],
    ['an empty file', '', /not valid/],
  ])('%s', (_name, yaml, message) => {
    expect(() => parsePrompt('search-r1', yaml, 'my-prompt.yaml')).toThrow(message);
    expect(() => parsePrompt('search-r1', yaml, 'my-prompt.yaml')).toThrow(/my-prompt\.yaml/);
  });

  test('a file that is not there', () => {
    expect(() => loadPrompts({ prompt: 'no-such-prompt' })).toThrow(/no-such-prompt\.yaml/);
  });
});

test('fixed observations longer than the limit are refused at the start', () => {
  const tokenizer = createPieceTokenizer();
  const config = { ...configSchema.parse({}).rollout, observationTokens: 16 };
  const generator = createScriptedGenerator({ tokenizer, policy: scriptOf(tokenizer, []), eosTokenIds: [2] });
  const prompts = loadPrompts(config);
  expect(() => createRolloutRunner({ generator, retriever: null, tokenizer, config, prompts })).toThrow(
    /corrective take \d+ tokens, but rollout.observationTokens is 16/,
  );
});
