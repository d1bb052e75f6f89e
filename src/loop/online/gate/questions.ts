// Which questions judge and which teach: never both. Decided by a hash of the text, so that the same question asked
// twice, by whomever, falls on the same side.

import type { Question } from '../../../evaluation/index.js';
import type { StoredMessage } from '../../../trajectory/index.js';
import { canonicalJson, sha256Hex } from '../../../util/digest.js';

/** Of this split alone: another one must not share it, or what one holds out the other would train on. */
const HOLD_OUT_SALT = 'searchloop gate 1:';
const ORDER_SALT = 'searchloop gate order 1:';
const HELD_OUT_PERCENT = 10;

const END_MARK = /[\s?.!]/u;

/** What of a question counts for the split: not its case, its spaces or the mark at its end. */
export function questionKey(question: string): string {
  const text = question.normalize('NFKC').toLowerCase().replace(/\s+/gu, ' ').trim();
  let end = text.length;
  // A pattern with `$` would begin anew at each mark of a long run.
  while (end > 0 && END_MARK.test(text[end - 1] as string)) end--;
  return sha256Hex(text.slice(0, end)).slice(0, 32);
}

const digests = new WeakMap<readonly StoredMessage[], string>();

/** Of a whole conversation, to the letter; worked out once for each list of messages. */
export function conversationDigest(messages: readonly StoredMessage[]): string {
  const known = digests.get(messages);
  if (known !== undefined) return known;
  const digest = sha256Hex(canonicalJson(messages));
  digests.set(messages, digest);
  return digest;
}

/** Held out for the gate: never trained on. */
export const isHeldOut = (key: string): boolean =>
  Number.parseInt(sha256Hex(HOLD_OUT_SALT + key).slice(0, 8), 16) % 100 < HELD_OUT_PERCENT;

export interface GateQuestion {
  readonly key: string;
  /** The whole conversation; the last user message asks. */
  readonly messages: readonly StoredMessage[];
  readonly goldenAnswers: readonly string[];
}

const askedBy = new WeakMap<readonly Question[], readonly GateQuestion[]>();

/** Questions that an admin set aside, as conversations; made once for each list, as what is worked out of them is. */
export function configuredQuestions(questions: readonly Question[]): readonly GateQuestion[] {
  const known = askedBy.get(questions);
  if (known !== undefined) return known;
  const made = questions.map(({ question, goldenAnswers }) => ({
    key: questionKey(question),
    messages: [{ role: 'user', content: question }],
    goldenAnswers,
  }));
  askedBy.set(questions, made);
  return made;
}

const orders = new WeakMap<GateQuestion, string>();

/** In which questions are taken: by chance, and always the same. */
function orderOf(question: GateQuestion): string {
  const known = orders.get(question);
  if (known !== undefined) return known;
  const order = sha256Hex(ORDER_SALT + question.key);
  orders.set(question, order);
  return order;
}

export interface GateSlices {
  /** Compared with the live version. */
  readonly working: readonly GateQuestion[];
  /** Those that no candidate has met; to confirm with, and for further stretches. */
  readonly fresh: readonly GateQuestion[];
}

/**
 * The questions of the present stretch of candidates, and all others that no candidate has met.
 * @param used     keys of earlier stretches
 * @param working  keys of the present one; filled up from what is left while it has fewer than `count`
 */
export function gateSlices(
  pool: readonly GateQuestion[],
  used: ReadonlySet<string>,
  working: ReadonlySet<string>,
  count: number,
): GateSlices {
  const ordered = [...new Map(pool.map((question) => [question.key, question])).values()]
    .map((question) => ({ question, order: orderOf(question) }))
    .sort((a, b) => (a.order < b.order ? -1 : 1))
    .map(({ question }) => question);
  const present = ordered.filter(({ key }) => working.has(key));
  const others = ordered.filter(({ key }) => !working.has(key) && !used.has(key));
  const missing = Math.max(0, count - present.length);
  return {
    working: [...present, ...others.slice(0, missing)],
    fresh: others.slice(missing),
  };
}
