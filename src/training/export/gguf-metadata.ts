// The key-value section of a GGUF file for a decoder that came from elsewhere.

import { UnsupportedError } from '../../errors.js';
import type { DecoderConfig } from '../../model/index.js';
import { type TokenizerSource, tokenizerFromGguf } from '../../tokenizer/index.js';
import { canonicalJson } from '../../util/digest.js';
import type { GgufEntry } from '../../weights/index.js';

type Entries = [key: string, entry: GgufEntry][];

const uint = (value: number): GgufEntry => ({ type: 'uint32', items: null, value });
const float = (value: number): GgufEntry => ({ type: 'float32', items: null, value });
const text = (value: string): GgufEntry => ({ type: 'string', items: null, value });
const flag = (value: boolean): GgufEntry => ({ type: 'bool', items: null, value });
const list = (items: 'string' | 'int32', value: (string | number)[]): GgufEntry => ({
  type: 'array',
  items,
  value,
});

/** What llama.cpp needs to know of a decoder and its tokenizer. */
export function ggufMetadata(
  name: string,
  config: DecoderConfig,
  tokenizer: TokenizerSource,
): Map<string, GgufEntry> {
  return new Map([...describeDecoder(name, config), ...describeTokenizer(config, tokenizer)]);
}

function describeDecoder(name: string, config: DecoderConfig): Entries {
  const key = (part: string): string => `${config.architecture}.${part}`;
  return [
    ['general.architecture', text(config.architecture)],
    ['general.name', text(name)],
    [key('vocab_size'), uint(config.vocabSize)],
    [key('context_length'), uint(config.maxPositions)],
    [key('embedding_length'), uint(config.hiddenSize)],
    [key('block_count'), uint(config.layers)],
    [key('feed_forward_length'), uint(config.intermediateSize)],
    [key('attention.head_count'), uint(config.heads)],
    [key('attention.head_count_kv'), uint(config.kvHeads)],
    [key('attention.key_length'), uint(config.headDim)],
    [key('attention.value_length'), uint(config.headDim)],
    [key('attention.layer_norm_rms_epsilon'), float(config.normEpsilon)],
    [key('rope.dimension_count'), uint(config.headDim)],
    [key('rope.freq_base'), float(config.ropeTheta)],
  ];
}

interface TokenizerJson {
  readonly added_tokens?: readonly { id: number; content: string; special?: boolean }[];
  readonly normalizer?: unknown;
  readonly pre_tokenizer?: unknown;
  readonly model: {
    readonly type?: string;
    readonly vocab: Readonly<Record<string, number>>;
    readonly merges: readonly (string | readonly [string, string])[];
    readonly ignore_merges?: boolean;
  };
}

/** Token kinds of GGUF. */
const NORMAL = 1;
const CONTROL = 3;
const USER_DEFINED = 4;
const UNUSED = 5;

function describeTokenizer(config: DecoderConfig, source: TokenizerSource): Entries {
  const json = source.tokenizerJson as TokenizerJson;
  if (json.model.type !== 'BPE')
    throw new UnsupportedError(`a tokenizer of kind ${json.model.type} cannot be written to GGUF, only BPE`);
  const tokens = Array.from({ length: config.vocabSize }, (_, id) => `[PAD${id}]`);
  const kinds = tokens.map(() => UNUSED);
  for (const [token, id] of Object.entries(json.model.vocab)) {
    tokens[id] = token;
    kinds[id] = NORMAL;
  }
  for (const { id, content, special } of json.added_tokens ?? []) {
    tokens[id] = content;
    kinds[id] = special === false ? USER_DEFINED : CONTROL;
  }
  const merges = json.model.merges.map((merge) => (typeof merge === 'string' ? merge : merge.join(' ')));
  const role = (name: string, id: number | null | undefined): Entries =>
    id === null || id === undefined ? [] : [[`tokenizer.ggml.${name}_token_id`, uint(id)]];
  const template = chatTemplate(source);
  return [
    ['tokenizer.ggml.model', text('gpt2')],
    ['tokenizer.ggml.pre', text(preTokenizerName(json))],
    ['tokenizer.ggml.tokens', list('string', tokens)],
    ['tokenizer.ggml.token_type', list('int32', kinds)],
    ['tokenizer.ggml.merges', list('string', merges)],
    ...role('bos', config.bosTokenId),
    ...endRoles(config.eosTokenIds, tokens).flatMap(([name, id]) => role(name, id)),
    ['tokenizer.ggml.add_bos_token', flag(addsBegin(source))],
    ...(template === null ? [] : ([['tokenizer.chat_template', text(template)]] as Entries)),
  ];
}

/**
 * The roles under which GGUF names tokens that end a text. Readers take any of them for an end; which is that of a turn matters to
 * llama.cpp alone.
 * @throws {UnsupportedError} there are more ends than roles
 */
function endRoles(ends: readonly number[], tokens: readonly string[]): [name: string, id: number][] {
  const [eos, ...others] = ends;
  if (eos === undefined) return [];
  const turn = others.find((id) => tokens[id] === '<|eot_id|>') ?? others[0];
  const [message, ...more] = others.filter((id) => id !== turn);
  if (more.length > 0)
    throw new UnsupportedError(
      `GGUF names up to three tokens that end a text, but this model has ${ends.length}: ${ends.map((id) => `${id} ${tokens[id]}`).join(', ')}`,
    );
  return [
    ['eos', eos],
    ...(turn === undefined ? [] : ([['eot', turn]] as [string, number][])),
    ...(message === undefined ? [] : ([['eom', message]] as [string, number][])),
  ];
}

function chatTemplate({ chatTemplate: given, tokenizerConfig }: TokenizerSource): string | null {
  const stored = given ?? (tokenizerConfig as { chat_template?: unknown } | undefined)?.chat_template;
  return typeof stored === 'string' ? stored : null;
}

/** Whether the post-processor puts a token before a text. */
function addsBegin({ tokenizerJson }: TokenizerSource): boolean {
  const { post_processor: post } = tokenizerJson as { post_processor?: unknown };
  const { type, single, processors } = (post ?? {}) as {
    type?: string;
    single?: object[];
    processors?: { type?: string; single?: object[] }[];
  };
  const template = type === 'Sequence' ? processors?.find((item) => item.single !== undefined) : { single };
  return 'SpecialToken' in (template?.single?.[0] ?? {});
}

/** Names that our reader knows how to turn into a pre-tokenizer. */
const KNOWN_NAMES = ['smollm', 'qwen2', 'llama-bpe', 'gpt-2', 'default'] as const;

/**
 * llama.cpp's name for how text is cut before merging: the one that our own reader turns back into the same rules.
 * @throws {UnsupportedError} none does
 */
function preTokenizerName(json: TokenizerJson): string {
  const wanted = rules(json);
  const found = KNOWN_NAMES.find((name) => rules(readBack(name)) === wanted);
  if (found !== undefined) return found;
  throw new UnsupportedError(
    `the tokenizer's rules for cutting text have no name in GGUF that is known here (${KNOWN_NAMES.join(', ')}): ${wanted.slice(0, 200)}`,
  );
}

function readBack(name: string): TokenizerJson {
  const metadata = new Map<string, unknown>([
    ['tokenizer.ggml.model', 'gpt2'],
    ['tokenizer.ggml.pre', name],
    ['tokenizer.ggml.tokens', ['a']],
    ['tokenizer.ggml.merges', []],
  ]);
  return tokenizerFromGguf(metadata).tokenizerJson as TokenizerJson;
}

function rules({ normalizer, pre_tokenizer: pre, model }: TokenizerJson): string {
  return canonicalJson(withoutOffsets([normalizer ?? null, pre ?? null, model.ignore_merges === true]));
}

/** `trim_offsets` moves what is reported of a token's place, never the tokens. */
function withoutOffsets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutOffsets);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'trim_offsets')
      .map(([key, item]) => [key, withoutOffsets(item)]),
  );
}
