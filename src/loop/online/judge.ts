// The gate at work: which questions, measured how, with what error left to spend; the verdict is `decideGate`'s.

import { checkpointFolder } from '../../training/index.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';
import { GateAnswers } from './gate/answers.js';
import { decideGate, type GateEvidence, type GatePair, type GateVerdict, shortage } from './gate/decide.js';
import { GateMeasures } from './gate/measure.js';
import { type GateQuestion, type GateSlices, gateSlices, questionKey } from './gate/questions.js';
import type { LoopHouse } from './house.js';
import { checkpointsOf, gateAnswersFile } from './house.js';
import type { LabelIndex } from './labels.js';
import { deletedAlong } from './lineage.js';
import type { Versions } from './publish.js';
import type { LoopState } from './state.js';
import { alphaOfAttempt } from './statistics/alpha-spending.js';
import { Unaskable } from './unaskable.js';

/** Answers sampled to measure the distance from the start. */
const KL_ANSWERS = 8;
const CANDIDATE = 'loop-candidate';
/** Candidates on the same questions: of two more, one that is just as good could not pass. */
const RENEWED_AFTER = 5;

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
  /** Of the labels, when the answers were last looked through. */
  #forgotten = 0;

  constructor(
    private readonly house: LoopHouse,
    private readonly versions: Versions,
    private readonly unaskable: Unaskable = new Unaskable(),
    answers: GateAnswers = new GateAnswers(),
  ) {
    const rollouts = { priority: house.priority, parts: house.serving, topK: house.topK, unaskable };
    this.#measures = new GateMeasures({ ...rollouts, onNote: house.onNote }, answers);
  }

  /** An admin's questions and trusted labels of held-out traffic, without what was deleted or cannot be asked. */
  async pool(labels: LabelIndex): Promise<GateQuestion[]> {
    await labels.dropDeletedJudges();
    const own = this.house.gateQuestions.map(({ question, goldenAnswers }) => ({
      key: questionKey(question),
      messages: [{ role: 'user', content: question }],
      goldenAnswers,
    }));
    return this.#askable([...labels.toJudge(), ...own]);
  }

  #askable(pool: readonly GateQuestion[]): GateQuestion[] {
    return pool.filter(({ messages }) => !this.unaskable.has(messages));
  }

  /** Answers to questions that were deleted go, where the labels have forgotten any since. */
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
    return refusedOn === this.#basisOf(state, this.#slices(state, this.#askable(pool)).working);
  }

  async judge(state: LoopState, pool: readonly GateQuestion[], signal: AbortSignal): Promise<Judgement> {
    await this.#measures.begin();
    for (;;) {
      const judgement = await this.#judgeBy(state, this.#askable(pool), signal);
      if (judgement !== null) return judgement;
    }
  }

  /** Null where some of the questions cannot be asked: others are to take their place. */
  async #judgeBy(
    state: LoopState,
    pool: readonly GateQuestion[],
    signal: AbortSignal,
  ): Promise<Judgement | null> {
    const { gate } = this.house;
    const version = versionOf(state);
    await this.#measures.forgetAllBut(pool);
    const { stretch, working, fresh } = this.#renewed(state, this.#slices(state, pool));
    const isConfirming = this.#mustConfirm(state);
    const short = shortage(working.length, isConfirming ? fresh.length : null, gate);
    if (short !== null) {
      this.#shortOf = placeOf(state, pool);
      const waits = { verdict: 'waits', tests: [], reasons: [short] } as const;
      return { ...this.#told(state, version, waits), confirmedBy: null };
    }
    const evidence = await this.#measure({ ...state, stretch }, working, signal);
    if (evidence === null) return null;
    let verdict = decideGate(evidence, gate);
    // There are few fresh questions: a candidate that fails without them must not use them up.
    const isAskedFresh = isConfirming && verdict.verdict === 'passed';
    if (isAskedFresh) {
      const confirmation = await this.#confirmation(state, fresh, version, signal);
      if (confirmation === null) return null;
      verdict = decideGate({ ...evidence, confirmation }, gate);
    }
    const keys = (list: readonly GateQuestion[]): string[] => list.map(({ key }) => key);
    const fresher = isAskedFresh ? keys(fresh) : [];
    const tried = {
      ...stretch,
      attempts: stretch.attempts + 1,
      working: keys(working),
      // Whatever comes of it, a candidate has met them.
      used: fresher.length === 0 ? stretch.used : [...stretch.used, ...fresher],
    };
    const refusedOn = verdict.verdict === 'refused' ? this.#basisOf(state, working) : null;
    const told = this.#told({ ...state, stretch: tried, refusedOn }, version, verdict);
    return { ...told, confirmedBy: isAskedFresh && verdict.verdict === 'passed' ? fresher : null };
  }

  #slices({ stretch }: LoopState, pool: readonly GateQuestion[]): GateSlices {
    return gateSlices(pool, new Set(stretch.used), new Set(stretch.working), this.house.gate.questions);
  }

  /**
   * Where none ever confirm, nothing else begins a new stretch: after a few candidates their questions give way to others that no
   * candidate has met, while there are enough, and alpha is whole again.
   */
  #renewed({ stretch }: LoopState, { working, fresh }: GateSlices): GateSlices & Pick<LoopState, 'stretch'> {
    const { confirmEvery, questions } = this.house.gate;
    if (confirmEvery > 0 || stretch.attempts < RENEWED_AFTER || fresh.length < questions)
      return { stretch, working, fresh };
    const used = [...stretch.used, ...stretch.working];
    return { stretch: { ...stretch, attempts: 0, used }, working: fresh, fresh: [] };
  }

  #basisOf(state: LoopState, working: readonly GateQuestion[]): string {
    const { gate, serving } = this.house;
    const asked = working.map(({ key, goldenAnswers }) => [key, goldenAnswers]);
    const { live, confirmed } = state;
    const index = serving.retriever?.snapshotId ?? null;
    return sha256Hex(canonicalJson({ version: versionOf(state), live, confirmed, asked, gate, index }));
  }

  #mustConfirm({ stretch }: LoopState): boolean {
    const { confirmEvery, maxAttempts } = this.house.gate;
    if (confirmEvery === 0) return false;
    return stretch.publications + 1 >= confirmEvery || stretch.attempts >= maxAttempts;
  }

  async #measure(
    state: LoopState,
    working: readonly GateQuestion[],
    signal: AbortSignal,
  ): Promise<GateEvidence | null> {
    const { engine, folder, gate } = this.house;
    const checkpoint = checkpointFolder(checkpointsOf(folder), state.ledger?.trainerStep ?? 0);
    const { version } = await engine.loadAdapter(CANDIDATE, checkpoint, { replace: true });
    // Asked for by version: answers that are kept for the next verdict must be those of a content, not of a name.
    const live = await this.#adapterOf(state.live);
    const start = await this.#adapterOf(state.start);
    const measures = this.#measures;
    const pairs = await measures.pairs(working, version, live, signal);
    if (pairs.length < working.length) return null;
    return {
      probeChange: await measures.probeChange(working[0] as GateQuestion, version, live, signal),
      pairs,
      alpha: alphaOfAttempt(gate.alpha, state.stretch.attempts + 1),
      kl: await measures.kl(working.slice(0, KL_ANSWERS), version, start, signal),
      deletedRecords: await deletedAlong(this.house.store, version, state.live),
      confirmation: null,
    };
  }

  /** The candidate beside the version that was confirmed last; null where a question cannot be asked. */
  async #confirmation(
    { confirmed }: LoopState,
    fresh: readonly GateQuestion[],
    version: string,
    signal: AbortSignal,
  ): Promise<readonly GatePair[] | null> {
    const pairs = await this.#measures.pairs(fresh, version, await this.#adapterOf(confirmed), signal);
    return pairs.length < fresh.length ? null : pairs;
  }

  async #adapterOf(version: string): Promise<string | null> {
    return (await this.versions.ready(version)) === null ? null : version;
  }

  #told(state: LoopState, version: string, verdict: GateVerdict): { verdict: GateVerdict; state: LoopState } {
    const tests = verdict.tests.map((test) => ({
      ...test,
      value: Number.isFinite(test.value) ? test.value : null,
    }));
    const lastGate = {
      version,
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

const versionOf = ({ ledger, live }: LoopState): string => ledger?.version ?? live;

const placeOf = ({ stretch, live }: LoopState, pool: readonly GateQuestion[]): string =>
  `${pool.length} ${stretch.publications} ${stretch.attempts} ${live}`;
