// A generator that does not sample: a teacher says what each turn is, and its text is encoded by the policy's own
// tokenizer. Prompts, observations, masks and origins then come from the very code that real rollouts run through.

import type {
  EngineInfo,
  GenerationSequence,
  Generator,
  Turn,
  TurnEnd,
  TurnOptions,
} from '../../engine/index.js';
import { ContextLengthError, UnavailableError, UnsupportedError } from '../../errors.js';
import type { Tokenizer } from '../../tokenizer/index.js';
import { PROTOCOL_TAGS } from '../../trajectory/index.js';

/** What adapter version records of a teacher name. */
const TEACHER_VERSION = 'teacher';

/**
 * Says the text of the next turn.
 * @param appended  text that was appended since the last turn: the prompt, later the observation
 */
export type Teacher = (appended: string) => Promise<string> | string;

export interface TeacherOptions {
  readonly tokenizer: Tokenizer;
  readonly info: EngineInfo;
  /** One for each sequence that is opened. */
  readonly teacher: () => Teacher;
}

/** Ids of a turn: tags that the vocabulary has as tokens of their own are those tokens. */
export function encodeTurn(text: string, tokenizer: Tokenizer): number[] {
  const own = PROTOCOL_TAGS.filter((tag) => tokenizer.addedTokens.has(tag));
  if (own.length === 0) return tokenizer.encodePlain(text);
  return text.split(new RegExp(`(${own.join('|')})`)).flatMap((part) => {
    const id = (own as readonly string[]).includes(part) ? tokenizer.addedTokens.get(part) : undefined;
    return id === undefined ? tokenizer.encodePlain(part) : [id];
  });
}

/**
 * A generator for teachers. A turn whose text does not end with a stop string ends with the model's end token.
 * Every token has log-probability 0: the teacher was sure.
 */
export function createTeacherGenerator(options: TeacherOptions): Generator {
  const { info } = options;
  let open = 0;
  const refuse = async (): Promise<never> => {
    throw new UnsupportedError('a teacher has no adapters');
  };
  return {
    info,
    open: async ({ maxLength = info.maxSequenceTokens } = {}) => {
      open += 1;
      return openSequence(options, maxLength, () => {
        open -= 1;
      });
    },
    loadAdapter: refuse,
    unloadAdapter: refuse,
    setLiveAdapter: refuse,
    listAdapters: () => [],
    liveAdapter: null,
    stats: () => ({ running: open, queued: 0, queueLimit: 0, freeSlots: info.maxSequences }),
    close: async () => {},
  };
}

function openSequence(options: TeacherOptions, maxLength: number, onClose: () => void): GenerationSequence {
  const { tokenizer, info } = options;
  const teacher = options.teacher();
  let appended: number[] = [];
  let length = 0;
  let closed = false;

  async function* generate(turn: TurnOptions): Turn {
    if (closed) throw new UnavailableError('the sequence is closed');
    const text = await teacher(tokenizer.decode(appended));
    appended = [];
    const stopString = turn.stopStrings.find((stop) => text.endsWith(stop)) ?? null;
    const eos = info.eosTokenIds[0] as number;
    const ids = [...encodeTurn(text, tokenizer), ...(stopString === null ? [eos] : [])];
    const end = (reason: TurnEnd['reason']): TurnEnd => ({ reason, stopString, text: '', fullText: text });
    for (const [sampled, id] of ids.entries()) {
      if (closed) return end('cancelled');
      if (length >= maxLength) return end('context');
      if (sampled >= turn.maxTokens) return end('max_tokens');
      length += 1;
      yield { token: { id, logprob: 0, samplingLogprob: 0 }, text: '' };
    }
    return end(stopString === null ? 'stop_token' : 'stop_string');
  }

  return {
    adapterVersion: TEACHER_VERSION,
    get length() {
      return length;
    },
    maxLength,
    cachedTokens: 0,
    append(ids) {
      if (length + ids.length > maxLength)
        throw new ContextLengthError(`${length} and ${ids.length} tokens are more than ${maxLength}`);
      appended.push(...ids);
      length += ids.length;
    },
    generate,
    close() {
      if (!closed) onClose();
      closed = true;
    },
  };
}
