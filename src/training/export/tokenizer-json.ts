// A tokenizer.json that the tokenizers library loads: it wants every field of a part, ours need the telling ones only.

type Json = Readonly<Record<string, unknown>>;

const BYTE_LEVEL = { add_prefix_space: true, trim_offsets: true, use_regex: true };

/** Fields of a part by its type, as the library writes them. */
const PART_DEFAULTS: Readonly<Record<string, Json>> = {
  ByteLevel: BYTE_LEVEL,
  BPE: {
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    ignore_merges: false,
  },
  TemplateProcessing: {
    pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
  },
};

const ADDED_DEFAULTS = { single_word: false, lstrip: false, rstrip: false };

/** The same tokenizer with what was left out filled in. */
export function completeTokenizerJson(json: Json): Json {
  const { added_tokens: added = [], ...parts } = json;
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: (added as Json[]).map((token) => ({ ...ADDED_DEFAULTS, ...token })),
    ...Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, completed(part)])),
  };
}

function completed(part: unknown): unknown {
  if (Array.isArray(part)) return part;
  if (part === null || typeof part !== 'object') return part;
  const { type, pretokenizers, processors } = part as Json;
  const known = typeof type === 'string' && Object.hasOwn(PART_DEFAULTS, type) ? PART_DEFAULTS[type] : {};
  const nested = (parts: unknown): unknown => (parts as unknown[]).map(completed);
  return {
    ...known,
    ...part,
    ...(pretokenizers === undefined ? {} : { pretokenizers: nested(pretokenizers) }),
    ...(processors === undefined ? {} : { processors: nested(processors) }),
  };
}
