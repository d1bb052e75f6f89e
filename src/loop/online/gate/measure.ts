// What the gate is told: both versions' answers to the same questions, the distance from the start, the probe.

import { type Generator, ONE_GREEDY_TOKEN } from '../../../engine/index.js';
import { isPinned } from '../../../retrieval/index.js';
import { fingerprintMatch } from '../../../reward/index.js';
import { type Encoding, inlineEncoding, type RolloutRequest } from '../../../rollout/index.js';
import { derivedSeed } from '../../../util/derived-seed.js';
import { type IdleJob, type IdleRollouts, rollIdle } from '../idle-rollouts.js';
import { sampledKl, scoreTokens } from '../score-tokens.js';
import { GateAnswers, type GivenAnswer, givenAnswer } from './answers.js';
import type { GateAnswer, GatePair } from './decide.js';
import { conversationDigest, type GateQuestion } from './questions.js';

/** A version as the engine is asked for it; null is the base model. */
export type AdapterName = string | null;

export class GateMeasures {
  constructor(
    private readonly house: IdleRollouts,
    private readonly answers: GateAnswers = new GateAnswers(),
  ) {}

  /** Before a verdict: where nobody knows whether the index is still the same, answers of the last one are none to compare with. */
  async begin(): Promise<void> {
    const { retriever } = this.house.parts;
    if (retriever !== null && !isPinned(retriever)) await this.answers.forgetAll();
  }

  /** Of a question that cannot be asked, or is gone, there is none. */
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

  /** Answers to other conversations go, and these are asked no more: those who asked may have had them deleted. */
  forgetAllBut(questions: readonly GateQuestion[]): Promise<void> {
    return this.answers.forgetAllBut(new Set(questions.map(({ messages }) => conversationDigest(messages))));
  }

  isGone({ messages }: GateQuestion): boolean {
    return this.answers.isGone(conversationDigest(messages));
  }

  /** KL(candidate, reference) in nats a token, from answers that the candidate samples at temperature 1. */
  async kl(
    questions: readonly GateQuestion[],
    candidate: AdapterName,
    reference: AdapterName,
    signal: AbortSignal,
  ): Promise<number> {
    const jobs = questions.map((question) => this.#job(question, candidate, 1));
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
    await this.answers.open();
    const open = asked.filter(({ name }) => this.answers.get(name) === undefined);
    const kept: Promise<void>[] = [];
    // What met a search that failed, for whatever reason, tells of this verdict alone.
    const passing = new Map<string, GivenAnswer>();
    try {
      await rollIdle(
        this.house,
        open.map(({ question }) => this.#job(question, adapter, 0)),
        signal,
        (_done, at, record) => {
          const { name, digest } = open[at] as (typeof open)[number];
          if (record === null) return;
          if (record.searches.some(({ error }) => error !== null))
            passing.set(name, givenAnswer(digest, record));
          else kept.push(this.answers.add(name, digest, record));
        },
      );
    } finally {
      await Promise.all(kept);
    }
    return asked.map(({ question, name }) => {
      const given = passing.get(name) ?? this.answers.get(name);
      if (given === undefined) return null;
      const { answer, validActions, invalidActions } = given;
      return { em: fingerprintMatch(answer, question.goldenAnswers), validActions, invalidActions };
    });
  }

  #job(question: GateQuestion, adapter: AdapterName, temperature: number): IdleJob {
    const { key, messages } = question;
    return {
      id: `gate-${key}`,
      groupId: null,
      messages,
      seed: derivedSeed('gate', key),
      adapter,
      temperature,
      isGone: () => this.isGone(question),
    };
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
}

const encodingOf = ({ encoding, tokenizer }: IdleRollouts['parts']): Encoding =>
  encoding ?? inlineEncoding(tokenizer);

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
