// The tiny model's tokenizer: every word of the world with the space before it, every protocol tag and the line ends
// are one token; any other text is spelled in bytes. Written as the files that tokenizers are read from.

import { loadPrompts } from '#searchloop/rollout/index.js';
import { BYTE_CHARACTERS } from '#searchloop/tokenizer/index.js';
import { PROTOCOL_TAGS } from '#searchloop/trajectory/index.js';
import { QUESTION_FORMS, RELATIONS } from './relations.js';
import { THOUGHT_WORDS } from './turns.js';
import type { World } from './world.js';

export const TINY_WORLD_PROMPT = 'tiny-world';

export const END_TOKEN = '<|end|>';
/** Of the chat template only. */
const CONTROL_TOKENS = [END_TOKEN, '<|system|>', '<|user|>', '<|assistant|>'];

const WORDS_AND_TAGS = '</?[a-z]+>| ?[a-z]+| ?[.?]|\\n+|[\\s\\S]';

const CHAT_TEMPLATE = [
  "{% for message in messages %}{{ '<|' + message['role'] + '|> ' + message['content'] + '<|end|>' }}{% endfor %}",
  "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
].join('');

export interface TokenizerFiles {
  readonly tokenizerJson: object;
  readonly tokenizerConfig: object;
  /** Control tokens included. */
  readonly vocabSize: number;
  readonly endTokenId: number;
}

export function tokenizerFiles(world: World): TokenizerFiles {
  const [space, lineEnd] = [0x20, 0x0a].map((byte) => BYTE_CHARACTERS[byte] as string) as [string, string];
  const words = [...plainWords(), ...Object.values(world.nameWords).flat(2), '.', '?'].map(
    (word) => space + word,
  );
  const tokens = [...new Set([...BYTE_CHARACTERS, ...PROTOCOL_TAGS, lineEnd + lineEnd, ...words])];
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  const control = CONTROL_TOKENS.map((content, i) => ({
    id: tokens.length + i,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  const bytes = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
  return {
    tokenizerJson: {
      version: '1.0',
      truncation: null,
      padding: null,
      added_tokens: control,
      normalizer: null,
      pre_tokenizer: {
        type: 'Sequence',
        pretokenizers: [
          { type: 'Split', pattern: { Regex: WORDS_AND_TAGS }, behavior: 'Isolated', invert: false },
          bytes,
        ],
      },
      post_processor: null,
      decoder: bytes,
      // A word of the vocabulary is taken whole; without merges, all others are bytes.
      model: { type: 'BPE', unk_token: null, fuse_unk: false, ignore_merges: true, vocab, merges: [] },
    },
    tokenizerConfig: {
      tokenizer_class: 'PreTrainedTokenizerFast',
      clean_up_tokenization_spaces: false,
      eos_token: END_TOKEN,
      chat_template: CHAT_TEMPLATE,
    },
    vocabSize: tokens.length + control.length,
    endTokenId: tokens.length,
  };
}

/** Words of everything that is said in the world but names. */
function plainWords(): string[] {
  const { instruction, observation } = loadPrompts({ prompt: TINY_WORLD_PROMPT }).searchR1;
  const texts = [
    ...Object.values(RELATIONS).flatMap(({ sentence, keyword }) => [sentence, keyword]),
    ...QUESTION_FORMS.map(({ text }) => text),
    THOUGHT_WORDS,
    instruction,
    ...Object.values(observation),
  ];
  // Tags and holes are no words, nor is the only letter of a hole such as {s}.
  const found = texts.join(' ').replace(/<[^>]*>|\{[^}]*\}/g, ' ');
  return [...new Set(found.match(/[a-z]+/g) ?? [])];
}
