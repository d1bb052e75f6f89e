// An answer with what is known of it: what it is worth, and what other answers to its question are compared with.

import { exactMatch } from '../../reward/index.js';
import {
  type Label,
  type LabelSource,
  type StoredHead,
  type StoredMessage,
  saysNothing,
} from '../../trajectory/index.js';
import { isHeldOut, questionKey } from './gate/questions.js';

export interface KnownAnswer {
  readonly head: StoredHead;
  /** The question as the splits know it. */
  readonly key: string;
  /** Of the key: it may judge and is never trained on. */
  readonly isHeldOut: boolean;
  readonly messages: readonly StoredMessage[];
  readonly userKey: string | null;
  /** All of it; the head has its first characters only. */
  readonly answer: string | null;
  readonly label: Label;
  /** Who says what this answer is worth; empty where it has no label. */
  readonly sources: readonly LabelSource[];
  /** What a new rollout of the question is compared with; empty where only this very answer was judged. */
  readonly goldenAnswers: readonly string[];
  /** Who says what the question's answer is; where nobody does, who says what this one is worth. */
  readonly goldSources: readonly LabelSource[];
  /** Of the golden answers, those that may judge: given by an admin, or by two keys that agree on this very one; none of a chat. */
  readonly trustedAnswers: readonly string[];
}

/** Of a model without search: who asks it chats, and what is called right there is no answer that a policy could match word for word. */
export const isChat = ({ method }: Pick<StoredHead, 'method'>): boolean => method === 'chat';

/** Something was said of it. */
export type LabelledAnswer = KnownAnswer;

/** Of the record, which does not change. */
export type Texts = Pick<KnownAnswer, 'key' | 'isHeldOut' | 'messages' | 'answer'>;

export function splitOf(question: string): Pick<KnownAnswer, 'key' | 'isHeldOut'> {
  const key = questionKey(question);
  return { key, isHeldOut: isHeldOut(key) };
}

export function knownAnswer(
  head: StoredHead,
  { key, isHeldOut, messages, answer }: Texts,
  label: Label,
): KnownAnswer {
  const { reward, golds } = label;
  const right = rightAnswers(answer, label);
  return {
    head,
    key,
    isHeldOut,
    messages,
    userKey: head.userKey,
    answer,
    label,
    sources: reward?.sources ?? golds?.sources ?? [],
    goldenAnswers: right.map(({ text }) => text),
    goldSources: golds?.sources ?? reward?.sources ?? [],
    trustedAnswers: isChat(head)
      ? []
      : right.filter(({ backers }) => isTrusted(backers)).map(({ text }) => text),
  };
}

/** Of an answer all but its audit and its label stays as it is. */
export const isSame = (before: KnownAnswer | undefined, { head, label }: KnownAnswer): boolean =>
  before !== undefined &&
  before.head.auditState === head.auditState &&
  JSON.stringify(before.label) === JSON.stringify(label);

export const isLabelled = ({ label }: KnownAnswer): boolean => !saysNothing(label);

/** Gold answers before anything else, an admin's word before all others, many keys that agree before few. */
export function weightOf({ goldSources, answer, label, goldenAnswers }: KnownAnswer): number {
  const isAdmins = goldSources.some(({ role }) => role === 'admin');
  const right = rightAnswers(answer, label);
  const agreeing = Math.max(
    0,
    ...(right.length > 0 ? right.map(({ backers }) => backers.length) : [goldSources.length]),
  );
  const keys = isAdmins ? ADMIN_WEIGHT : Math.min(agreeing, ADMIN_WEIGHT - 1);
  return goldenAnswers.length > 0 ? ADMIN_WEIGHT + 1 + keys : keys;
}

const ADMIN_WEIGHT = 1_000_000;

interface RightAnswer {
  readonly text: string;
  /** One for each key. */
  readonly backers: readonly LabelSource[];
}

/**
 * Gold answers; where none were given, the answer itself where everybody called it right (its mean reward is 1: all who spoke
 * agree). Who called the answer right stands behind the gold answer that it is.
 */
function rightAnswers(answer: string | null, { reward, golds }: Label): RightAnswer[] {
  const isRight = reward !== null && reward.value >= 1 && answer !== null && answer !== '';
  const called = isRight ? reward.sources : [];
  if (golds === null) return isRight ? [{ text: answer, backers: called }] : [];
  return golds.answers.map((text, at) => {
    const given = golds.backers[at] ?? [];
    const more = called.length > 0 && exactMatch(answer, [text]) === 1 ? called : [];
    const keys = new Set(given.map(({ keyId }) => keyId));
    return { text, backers: [...given, ...more.filter(({ keyId }) => !keys.has(keyId))] };
  });
}

/** Two keys that contradict each other make none of theirs trusted. */
const isTrusted = (backers: readonly LabelSource[]): boolean =>
  backers.some(({ role }) => role === 'admin') || new Set(backers.map(({ keyId }) => keyId)).size >= 2;
