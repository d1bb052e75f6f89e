// The sessions of all stages: one set for each form that layers take, opened once.

import { setImmediate } from 'node:timers/promises';
import type { Graph, SplitGraphs, Value } from '../../graph/index.js';
import {
  afterAttention,
  attentionBlock,
  beforeAttention,
  type DecoderConfig,
  type LayerStageOptions,
  policyHead,
  policyHeadWithDirection,
  type Trained,
  valueHead,
} from '../../model/index.js';
import { type StageOptions, StageSession, type Views } from './stage-session.js';

export type Phase = 'score' | 'forward' | 'backward';

/** One graph, opened when it is first run. */
export class SingleStage {
  #session: StageSession | null = null;

  constructor(
    private readonly graph: Graph,
    private readonly options: StageOptions,
  ) {}

  async run(key: string, inputs: Views, outputs: Views): Promise<void> {
    this.#session ??= await StageSession.open(this.graph, this.options);
    // Lets the thread's messages in.
    await setImmediate();
    await this.#session.run(key, inputs, outputs);
  }

  close(): void {
    this.#session?.close();
    this.#session = null;
  }
}

/** A stage in its three phases. */
export class Stage {
  readonly #phases: Readonly<Record<Phase, SingleStage>>;

  constructor(
    private readonly graphs: SplitGraphs,
    options: StageOptions,
  ) {
    const { score, forward, backward } = graphs;
    const scoring = new SingleStage(score, options);
    this.#phases = {
      score: scoring,
      // Where nothing is kept the two are one.
      forward: forward.outputs.length === score.outputs.length ? scoring : new SingleStage(forward, options),
      backward: new SingleStage(backward, options),
    };
  }

  /** Results of the forward phases, and with `forward` what is kept beside them. */
  results(phase: 'score' | 'forward'): readonly Value[] {
    return this.graphs[phase].outputs;
  }

  get hasBackward(): boolean {
    return this.graphs.backward.outputs.length > 0;
  }

  run(phase: Phase, key: string, inputs: Views, outputs: Views): Promise<void> {
    return this.#phases[phase].run(key, inputs, outputs);
  }

  close(): void {
    for (const phase of Object.values(this.#phases)) phase.close();
  }
}

export interface LayerStages {
  readonly before: Stage;
  readonly attention: Stage;
  /** The same, keeping the probabilities. */
  readonly attentionKeeping: Stage;
  readonly after: Stage;
}

export class Stages {
  readonly #layers = new Map<string, LayerStages>();
  readonly #attention: Stage;
  readonly #attentionKeeping: Stage;
  readonly head: Stage;
  /** Scores with the gradient of each log-probability; null where the head is trained or gives values. */
  readonly direction: SingleStage | null;

  constructor(
    private readonly config: DecoderConfig,
    private readonly options: StageOptions,
    trained: Trained,
    kind: 'policy' | 'value',
  ) {
    this.#attention = new Stage(attentionBlock(config, false), options);
    this.#attentionKeeping = new Stage(attentionBlock(config, true), options);
    this.direction =
      kind === 'policy' && trained.kind === 'lora'
        ? new SingleStage(policyHeadWithDirection(config), options)
        : null;
    this.head = new Stage((kind === 'policy' ? policyHead : valueHead)(config, trained), options);
  }

  layer(options: LayerStageOptions): LayerStages {
    const key = JSON.stringify(options);
    let stages = this.#layers.get(key);
    if (stages === undefined) {
      stages = {
        before: new Stage(beforeAttention(this.config, options), this.options),
        attention: this.#attention,
        attentionKeeping: this.#attentionKeeping,
        after: new Stage(afterAttention(this.config, options), this.options),
      };
      this.#layers.set(key, stages);
    }
    return stages;
  }

  close(): void {
    for (const { before, after } of this.#layers.values()) {
      before.close();
      after.close();
    }
    this.#attention.close();
    this.#attentionKeeping.close();
    this.head.close();
    this.direction?.close();
  }
}
