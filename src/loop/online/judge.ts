// The gate at work: which questions, measured how, with what error left to spend; the verdict is `decideGate`'s.

import { IntegrityError } from '../../errors.js';
import { checkpointFolder } from '../../training/index.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';
import { GateAnswers } from './gate/answers.js';
import {
  decideGate,
  decideLimits,
  type GateLimits,
  type GatePair,
  type GateVerdict,
  shortage,
} from './gate/decide.js';
import { GateMeasures } from './gate/measure.js';
import { configuredQuestions, type GateQuestion } from './gate/questions.js';
import { mustConfirm, type OpenStretch, openStretch, slicesOf } from './gate/stretch.js';
import type { LoopHouse } from './house.js';
import { checkpointsOf, gateAnswersFile, UNPUBLISHED } from './house.js';
import type { LabelIndex } from './labels.js';
import { deletedAlong } from './lineage.js';
import type { Versions } from './publish.js';
import type { LoopState } from './state.js';
import { alphaOfAttempt } from './statistics/alpha-spending.js';
import { Unaskable } from './unaskable.js';

/** Answers sampled to measure the distance from the start. */
const KL_ANSWERS = 8;
const CANDIDATE = 'loop-candidate';

export interface Judgement {
  readonly verdict: GateVerdict;
  readonly state: LoopState;
  /** Keys of the fresh questions that confirmed the candidate: with its publication the next stretch begins on them. */
  readonly confirmedBy: readonly string[] | null;
}

export class Judge {
  readonly #measures: GateMeasures;
  /** Questions that were too few when the gate last looked. */
  #shortOf: string | null = null;
  /** Of the labels, when the answers were last looked through; null: not since the start, before which others went. */
  #forgotten: number | null = null;

  constructor(
    private readonly house: LoopHouse,
    private readonly versions: Versions,
    private readonly unaskable: Unaskable = new Unaskable(),
    answers: GateAnswers = new GateAnswers(),
  ) {
    const { priority, serving: parts, topK, outages, onNote } = house;
    this.#measures = new GateMeasures({ priority, parts, topK, unaskable, outages, onNote }, answers);
  }

  /** An admin's questions and trusted labels of held-out traffic, without what was deleted or cannot be asked. */
  async pool(labels: LabelIndex): Promise<GateQuestion[]> {
    await labels.dropDeletedJudges();
    return this.#askable([...labels.toJudge(), ...configuredQuestions(this.house.gateQuestions)]);
  }

  #askable(pool: readonly GateQuestion[]): GateQuestion[] {
    return pool.filter(({ messages }) => !this.unaskable.has(messages));
  }

  /** Answers to questions that were deleted go, where the labels have forgotten any since; of labels that are read in. */
  async forgetDeleted(labels: LabelIndex): Promise<void> {
    const { forgotten } = labels;
    if (forgotten === this.#forgotten) return;
    await this.#measures.forgetAllBut(await this.pool(labels));
    this.#forgotten = forgotten;
  }

  /**
   * Nothing has come since the gate said that it must wait, or since it refused this very candidate: a step from which nothing
   * is learned leaves the version as it was.
   */
  knows(state: LoopState, pool: readonly GateQuestion[]): boolean {
    if (this.#shortOf === placeOf(state, pool)) return true;
    const { refusedOn, lastGate, ledger } = state;
    if (refusedOn === null || lastGate?.version !== ledger?.version) return false;
    return (
      refusedOn ===
      this.#basisOf(state, slicesOf(state.stretch, this.#askable(pool), this.house.gate).working)
    );
  }

  async judge(state: LoopState, labels: LabelIndex, signal: AbortSignal): Promise<Judgement> {
    await this.#measures.begin();
    for (;;) {
      // Anew each time: a verdict may take an hour, and some of the questions may be gone.
      const judgement = await this.#judgeBy(state, await this.pool(labels), signal);
      if (judgement !== null) return judgement;
    }
  }

  /** Null where some of the questions cannot be asked or are gone: others are to take their place. */
  async #judgeBy(
    state: LoopState,
    pool: readonly GateQuestion[],
    signal: AbortSignal,
  ): Promise<Judgement | null> {
    const { gate } = this.house;
    await this.#measures.forgetAllBut(pool);
    const open = openStretch(state.stretch, pool, gate);
    const { working, fresh } = open;
    const isConfirming = mustConfirm(open.stretch, fresh.length, gate);
    const short = shortage(working.length, isConfirming ? fresh.length : null, gate);
    if (short !== null) {
      this.#shortOf = placeOf(state, pool);
      const waits = { verdict: 'waits', tests: [], reasons: [short] } as const;
      return { ...this.#told(state, waits), confirmedBy: null };
    }
    const candidate = await this.#load(state);
    const limits = await this.#limits(state, candidate, working, signal);
    if (limits === null) return null;
    const refused = decideLimits(limits, gate);
    // Who is refused for these is asked nothing, and so spends nothing of alpha.
    if (refused.verdict === 'refused') return this.#tried(state, open, refused, 0);
    return this.#ask(state, open, candidate, limits, isConfirming, signal);
  }

  /** On the working questions and, where they are due, on fresh ones. */
  async #ask(
    state: LoopState,
    open: OpenStretch,
    candidate: string,
    limits: GateLimits,
    isConfirming: boolean,
    signal: AbortSignal,
  ): Promise<Judgement | null> {
    const { gate } = this.house;
    const pairs = await this.#pairs(open.working, candidate, state.live, signal);
    if (pairs === null) return null;
    const alpha = alphaOfAttempt(gate.alpha, open.stretch.attempts + 1);
    const evidence = { ...limits, pairs, alpha, confirmation: null };
    const verdict = decideGate(evidence, gate);
    // There are few fresh questions: a candidate that fails without them must not use them up.
    if (!isConfirming || verdict.verdict !== 'passed') return this.#tried(state, open, verdict, 1);
    const confirmation = await this.#pairs(open.fresh, candidate, state.confirmed, signal);
    if (confirmation === null) return null;
    const confirmed = decideGate({ ...evidence, confirmation }, gate);
    return this.#tried(state, open, confirmed, 1, keysOf(open.fresh));
  }

  /** @param attempts  0 or 1: whether it was asked the working questions  @param met  the fresh ones that it was asked */
  #tried(
    state: LoopState,
    { stretch, working }: OpenStretch,
    verdict: GateVerdict,
    attempts: number,
    met: readonly string[] = [],
  ): Judgement {
    const tried = {
      ...stretch,
      attempts: stretch.attempts + attempts,
      working: keysOf(working),
      // Whatever comes of it, a candidate has met them.
      used: met.length === 0 ? stretch.used : [...stretch.used, ...met],
    };
    const refusedOn = verdict.verdict === 'refused' ? this.#basisOf(state, working) : null;
    const confirmedBy = met.length > 0 && verdict.verdict === 'passed' ? met : null;
    return { ...this.#told({ ...state, stretch: tried, refusedOn }, verdict), confirmedBy };
  }

  #basisOf(state: LoopState, working: readonly GateQuestion[]): string {
    const { gate, serving } = this.house;
    const asked = working.map(({ key, goldenAnswers }) => [key, goldenAnswers]);
    const { live, confirmed } = state;
    const index = serving.retriever?.snapshotId ?? null;
    return sha256Hex(canonicalJson({ version: versionOf(state), live, confirmed, asked, gate, index }));
  }

  /** Asked for by version: answers that are kept for the next verdict must be those of a content, not of a name. */
  async #load({ ledger }: LoopState): Promise<string> {
    const { engine, folder } = this.house;
    const checkpoint = checkpointFolder(checkpointsOf(folder), ledger?.trainerStep ?? 0);
    const { version } = await engine.loadAdapter(CANDIDATE, checkpoint, UNPUBLISHED);
    if (ledger !== null && version !== ledger.version)
      throw new IntegrityError(
        `${checkpoint} holds version ${version}, expected the candidate ${ledger.version}`,
      );
    return version;
  }

  /** Null where a question cannot be asked or is gone. */
  async #limits(
    { live, start }: LoopState,
    candidate: string,
    working: readonly GateQuestion[],
    signal: AbortSignal,
  ): Promise<GateLimits | null> {
    const measures = this.#measures;
    const some = working.slice(0, KL_ANSWERS);
    const kl = await measures.kl(some, candidate, await this.#adapterOf(start), signal);
    if (some.some((question) => this.unaskable.has(question.messages) || measures.isGone(question)))
      return null;
    return {
      kl,
      probeChange: await measures.probeChange(
        working[0] as GateQuestion,
        candidate,
        await this.#adapterOf(live),
        signal,
      ),
      deletedRecords: await deletedAlong(this.house.store, candidate, live),
    };
  }

  /** The candidate beside another version; null where a question cannot be asked or is gone. */
  async #pairs(
    questions: readonly GateQuestion[],
    candidate: string,
    other: string,
    signal: AbortSignal,
  ): Promise<readonly GatePair[] | null> {
    const pairs = await this.#measures.pairs(questions, candidate, await this.#adapterOf(other), signal);
    return pairs.length < questions.length ? null : pairs;
  }

  async #adapterOf(version: string): Promise<string | null> {
    return (await this.versions.ready(version)) === null ? null : version;
  }

  #told(state: LoopState, verdict: GateVerdict): { verdict: GateVerdict; state: LoopState } {
    const tests = verdict.tests.map((test) => ({
      ...test,
      value: Number.isFinite(test.value) ? test.value : null,
    }));
    const lastGate = {
      version: versionOf(state),
      verdict: verdict.verdict,
      reasons: [...verdict.reasons],
      tests,
      at: Date.now(),
    };
    const stepsSinceGate = verdict.verdict === 'waits' ? state.stepsSinceGate : 0;
    return { verdict, state: { ...state, lastGate, stepsSinceGate } };
  }
}

/** Those of a loop, in its folder. */
export function gateAnswers({ engine, serving, topK, configDigest, folder, onNote }: LoopHouse): GateAnswers {
  const { modelDigest, precision } = engine.info;
  // Those of the first form were kept whether or not searches had failed.
  const decisive = { form: 2, configDigest, modelDigest, precision, topK, rollout: serving.config };
  const path = gateAnswersFile(folder);
  return new GateAnswers({ path, stamp: sha256Hex(canonicalJson(decisive)), onNote });
}

const keysOf = (questions: readonly GateQuestion[]): string[] => questions.map(({ key }) => key);

const versionOf = ({ ledger, live }: LoopState): string => ledger?.version ?? live;

const placeOf = ({ stretch, live }: LoopState, pool: readonly GateQuestion[]): string =>
  `${pool.length} ${stretch.publications} ${stretch.attempts} ${live}`;
