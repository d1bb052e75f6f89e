// The shape of Hugging Face's tokenizer.json and tokenizer_config.json, as far as this room reads them.
// Both may come from a file of unknown origin, so every member is checked before use.

import { z } from 'zod';
import { FileFormatError } from '../errors.js';

/** A normalizer, pre-tokenizer, post-processor or decoder: a named part with its own members. */
export interface PartConfig {
  readonly type: string;
  readonly [member: string]: unknown;
}

export interface AddedTokenConfig {
  readonly id: number;
  readonly content: string;
  readonly single_word: boolean;
  readonly lstrip: boolean;
  readonly rstrip: boolean;
  readonly normalized: boolean;
  readonly special: boolean;
}

export interface ModelConfig {
  readonly type: 'BPE' | 'WordPiece' | 'Unigram';
  /** Token text to id. */
  readonly vocab: ReadonlyMap<string, number>;
  /** BPE: pairs in order of rank. */
  readonly merges: readonly (readonly [string, string])[];
  /** Unigram: log-probability of each id. */
  readonly scores: readonly number[];
  readonly unknownToken: string | null;
  readonly fuseUnknown: boolean;
  readonly byteFallback: boolean;
  readonly ignoreMerges: boolean;
  readonly continuingSubwordPrefix: string | null;
  readonly endOfWordSuffix: string | null;
  readonly maxInputCharsPerWord: number;
}

export interface TokenizerJson {
  readonly model: ModelConfig;
  readonly addedTokens: readonly AddedTokenConfig[];
  readonly normalizer: PartConfig | null;
  readonly preTokenizer: PartConfig | null;
  readonly postProcessor: PartConfig | null;
  readonly decoder: PartConfig | null;
}

const part = z
  .looseObject({ type: z.string() })
  .nullish()
  .transform((value): PartConfig | null => value ?? null);

const id = z.int().min(0).max(0x3ffffff);

const addedToken = z
  .object({
    id,
    content: z.string().min(1),
    single_word: z.boolean().default(false),
    lstrip: z.boolean().default(false),
    rstrip: z.boolean().default(false),
    normalized: z.boolean().optional(),
    special: z.boolean().default(false),
  })
  .transform((token): AddedTokenConfig => ({ ...token, normalized: token.normalized ?? !token.special }));

const model = z.looseObject({
  type: z.enum(['BPE', 'WordPiece', 'Unigram']).optional(),
  vocab: z.union([
    z.custom<Record<string, unknown>>(
      (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    ),
    z.array(z.tuple([z.string(), z.number()])),
  ]),
  merges: z.array(z.unknown()).optional(),
  unk_token: z.string().nullish(),
  unk_id: z.int().nullish(),
  fuse_unk: z.boolean().nullish(),
  byte_fallback: z.boolean().nullish(),
  ignore_merges: z.boolean().nullish(),
  continuing_subword_prefix: z.string().nullish(),
  end_of_word_suffix: z.string().nullish(),
  max_input_chars_per_word: z.int().positive().nullish(),
});

const schema = z.looseObject({
  model,
  added_tokens: z.array(addedToken).nullish(),
  normalizer: part,
  pre_tokenizer: part,
  post_processor: part,
  decoder: part,
});

function vocabulary(source: z.infer<typeof model>['vocab']): Map<string, number> {
  if (Array.isArray(source)) return new Map(source.map(([token], index) => [token, index]));
  const vocab = new Map<string, number>();
  for (const [token, value] of Object.entries(source)) {
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > 0x3ffffff)
      throw new FileFormatError(`tokenizer.json: model.vocab[${JSON.stringify(token)}] is no token id`);
    vocab.set(token, value);
  }
  return vocab;
}

/** Old files write a merge as "a b", newer ones as ["a", "b"]. */
function mergePair(merge: unknown, rank: number): readonly [string, string] {
  const pair = typeof merge === 'string' ? merge.split(' ') : merge;
  if (
    Array.isArray(pair) &&
    pair.length === 2 &&
    pair.every((side) => typeof side === 'string' && side !== '')
  )
    return pair as unknown as readonly [string, string];
  throw new FileFormatError(`tokenizer.json: model.merges[${rank}] is not a pair of tokens`);
}

function modelType(source: z.infer<typeof model>): ModelConfig['type'] {
  if (source.type !== undefined) return source.type;
  if (Array.isArray(source.vocab)) return 'Unigram';
  return source.merges === undefined ? 'WordPiece' : 'BPE';
}

function parseModel(source: z.infer<typeof model>): ModelConfig {
  const unknownId = source.unk_id ?? null;
  const unknownToken =
    Array.isArray(source.vocab) && unknownId !== null ? source.vocab[unknownId]?.[0] : source.unk_token;
  return {
    type: modelType(source),
    vocab: vocabulary(source.vocab),
    merges: (source.merges ?? []).map(mergePair),
    scores: Array.isArray(source.vocab) ? source.vocab.map(([, score]) => score) : [],
    unknownToken: unknownToken ?? null,
    fuseUnknown: source.fuse_unk ?? false,
    byteFallback: source.byte_fallback ?? false,
    ignoreMerges: source.ignore_merges ?? false,
    continuingSubwordPrefix: source.continuing_subword_prefix || null,
    endOfWordSuffix: source.end_of_word_suffix || null,
    maxInputCharsPerWord: source.max_input_chars_per_word ?? 100,
  };
}

const where = (error: z.ZodError): string =>
  error.issues.map((issue) => `${issue.path.join('.') || 'the file'}: ${issue.message}`).join('; ');

/**
 * Checks a parsed tokenizer.json.
 * @throws {FileFormatError} naming the member that is missing or has the wrong shape.
 */
export function parseTokenizerJson(value: unknown): TokenizerJson {
  const result = schema.safeParse(value);
  if (!result.success) throw new FileFormatError(`tokenizer.json: ${where(result.error)}`);
  const source = result.data;
  return {
    model: parseModel(source.model),
    addedTokens: source.added_tokens ?? [],
    normalizer: source.normalizer,
    preTokenizer: source.pre_tokenizer,
    postProcessor: source.post_processor,
    decoder: source.decoder,
  };
}

/** Special tokens of tokenizer_config.json by role, such as `bos_token`; a template sees them under these names. */
export type NamedTokens = Readonly<Record<string, string>>;

const tokenName = z.union([
  z.string(),
  z.looseObject({ content: z.string() }).transform((token) => token.content),
]);

const configSchema = z.looseObject({
  chat_template: z
    .union([z.string(), z.array(z.looseObject({ name: z.string(), template: z.string() }))])
    .nullish(),
});

/**
 * Reads what tokenizer_config.json says about named tokens and the chat template. Of a list of templates the one
 * called `default` counts, else the first.
 * @throws {FileFormatError} when `chat_template` is neither text nor a list of named templates.
 */
export function parseTokenizerConfig(value: unknown): { named: NamedTokens; chatTemplate: string | null } {
  const result = configSchema.safeParse(value ?? {});
  if (!result.success) throw new FileFormatError(`tokenizer_config.json: ${where(result.error)}`);
  const named: Record<string, string> = {};
  for (const [key, member] of Object.entries(result.data)) {
    if (!key.endsWith('_token')) continue;
    const token = tokenName.safeParse(member);
    if (token.success) named[key] = token.data;
  }
  const templates = result.data.chat_template ?? null;
  if (!Array.isArray(templates)) return { named, chatTemplate: templates };
  const chosen = templates.find((entry) => entry.name === 'default') ?? templates[0];
  return { named, chatTemplate: chosen?.template ?? null };
}
