// What the gate is told: both versions' answers to the same questions, the distance from the start, the probe.

import { type Generator, ONE_GREEDY_TOKEN } from '../../../engine/index.js';
import { exactMatch } from '../../../reward/index.js';
import { type Encoding, inlineEncoding, type RolloutRequest } from '../../../rollout/index.js';
import { derivedSeed } from '../../../training/index.js';
import { type IdleJob, type IdleRollouts, rollIdle } from '../idle-rollouts.js';
import { sampledKl, scoreTokens } from '../score-tokens.js';
import type { GateAnswer, GatePair } from './decide.js';
import { conversationDigest, type GateQuestion } from './questions.js';

/** A version as the engine is asked for it; null is the base model. */
export type AdapterName = string | null;

/** What a version answered; what that is worth depends on gold answers, which people correct. */
interface Given extends Omit<GateAnswer, 'em'> {
  readonly answer: string | null;
  /** Digest of the conversation that it answers. */
  readonly asked: string;
}

export class GateMeasures {
  /** Greedy answers of a version to a conversation do not change: those of the live one are asked for once. */
  readonly #given = new Map<string, Given>();

  constructor(private readonly house: IdleRollouts) {}

  /** Of a question that cannot be asked there is none. */
  async pairs(
    questions: readonly GateQuestion[],
    candidate: AdapterName,
    other: AdapterName,
    signal: AbortSignal,
  ): Promise<GatePair[]> {
    // An index that changes meanwhile is the next verdict's.
    const snapshot = this.house.parts.retriever?.snapshotId ?? null;
    const ours = await this.#answersOf(questions, candidate, snapshot, signal);
    const theirs = await this.#answersOf(questions, other, snapshot, signal);
    return questions.flatMap(({ key }, i) => {
      const [candidate, live] = [ours[i] ?? null, theirs[i] ?? null];
      return candidate === null || live === null ? [] : [{ id: key, candidate, live }];
    });
  }

  /** Answers to other conversations go: those who asked may have had them deleted. */
  forgetAllBut(questions: readonly GateQuestion[]): void {
    const asked = new Set(questions.map(({ messages }) => conversationDigest(messages)));
    for (const [name, given] of this.#given) if (!asked.has(given.asked)) this.#given.delete(name);
  }

  /** KL(candidate, reference) in nats a token, from answers that the candidate samples at temperature 1. */
  async kl(
    questions: readonly GateQuestion[],
    candidate: AdapterName,
    reference: AdapterName,
    signal: AbortSignal,
  ): Promise<number> {
    const jobs = questions.map((question) => jobOf(question, candidate, 1));
    const records = await rollIdle(this.house, jobs, signal);
    const scored = [];
    for (const record of records) {
      if (record === null) continue;
      const other = await this.#undisturbed(signal, (generator) => scoreTokens(generator, record, reference));
      scored.push({ own: record.logprobs, other, mask: record.lossMask });
    }
    return sampledKl(scored);
  }

  /** Largest difference in a log-probability of the first token after a prompt, among the likeliest of both. */
  async probeChange(
    question: GateQuestion,
    a: AdapterName,
    b: AdapterName,
    signal: AbortSignal,
  ): Promise<number> {
    const { priority, parts } = this.house;
    const messages = question.messages as RolloutRequest['messages'];
    const prompt = await encodingOf(parts).prompt(messages, priority.users.info.maxSequenceTokens);
    const likely = (adapter: AdapterName) =>
      this.#undisturbed(signal, (generator) => firstLogprobs(generator, prompt, adapter));
    const [first, second] = [await likely(a), await likely(b)];
    let change = 0;
    for (const [id, logprob] of first) {
      const other = second.get(id);
      // A token that left the likeliest twenty has changed a lot.
      change = Math.max(change, other === undefined ? 1 : Math.abs(logprob - other));
    }
    return change;
  }

  async #answersOf(
    questions: readonly GateQuestion[],
    adapter: AdapterName,
    snapshot: string | null,
    signal: AbortSignal,
  ): Promise<(GateAnswer | null)[]> {
    const asked = questions.map((question) => {
      const digest = conversationDigest(question.messages);
      return { question, digest, name: `${adapter} ${snapshot} ${digest}` };
    });
    const open = asked.filter(({ name }) => !this.#given.has(name));
    const records = await rollIdle(
      this.house,
      open.map(({ question }) => jobOf(question, adapter, 0)),
      signal,
    );
    for (const [i, { name, digest }] of open.entries()) {
      const record = records[i] ?? null;
      if (record === null) continue;
      const { answer, validActions, invalidActions } = record;
      this.#given.set(name, { answer, validActions, invalidActions, asked: digest });
    }
    const answers = asked.map(({ question, name }) => {
      const given = this.#given.get(name);
      if (given === undefined) return null;
      const { answer, validActions, invalidActions } = given;
      return { em: exactMatch(answer, question.goldenAnswers), validActions, invalidActions };
    });
    this.#shrink();
    return answers;
  }

  /** Does it again when a user came in between. */
  async #undisturbed<T>(signal: AbortSignal, work: (generator: Generator) => Promise<T>): Promise<T> {
    for (;;) {
      const { generator, yielded } = this.house.priority.training(signal);
      try {
        const result = await work(generator);
        if (!yielded()) return result;
      } catch (error) {
        if (signal.aborted || !yielded()) throw error;
      }
    }
  }

  #shrink(): void {
    const most = 20_000;
    for (const name of this.#given.keys()) {
      if (this.#given.size <= most) return;
      this.#given.delete(name);
    }
  }
}

const encodingOf = ({ encoding, tokenizer }: IdleRollouts['parts']): Encoding =>
  encoding ?? inlineEncoding(tokenizer);

const jobOf = ({ key, messages }: GateQuestion, adapter: AdapterName, temperature: number): IdleJob => ({
  id: `gate-${key}`,
  groupId: null,
  messages,
  seed: derivedSeed('gate', key),
  adapter,
  temperature,
});

async function firstLogprobs(
  generator: Generator,
  prompt: readonly number[],
  adapter: AdapterName,
): Promise<Map<number, number>> {
  const sequence = await generator.open({ adapter, maxLength: prompt.length + 1 });
  try {
    sequence.append(prompt);
    const turn = sequence.generate({ ...ONE_GREEDY_TOKEN, topLogprobs: 20 });
    const likely = new Map<number, number>();
    for await (const { token } of turn)
      for (const { id, logprob } of token.alternatives ?? []) likely.set(id, logprob);
    return likely;
  } finally {
    sequence.close();
  }
}
