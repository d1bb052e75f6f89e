// The sessions of all stages: one set for each form that layers take, opened once.

import { setImmediate } from 'node:timers/promises';
import type { SplitGraphs, Value } from '../../graph/index.js';
import {
  afterAttention,
  attentionBlock,
  beforeAttention,
  type DecoderConfig,
  type LayerStageOptions,
  policyHead,
  type Trained,
  valueHead,
} from '../../model/index.js';
import { type StageOptions, StageSession, type Views } from './stage-session.js';

export type Phase = 'score' | 'forward' | 'backward';

/** A stage in its three phases, opened when they are first run. */
export class Stage {
  readonly #sessions = new Map<Phase, StageSession>();

  constructor(
    private readonly graphs: SplitGraphs,
    private readonly options: StageOptions,
  ) {}

  /** Results of the forward phases, and with `forward` what is kept beside them. */
  results(phase: 'score' | 'forward'): readonly Value[] {
    return this.graphs[phase].outputs;
  }

  get #keepsNothing(): boolean {
    return this.graphs.forward.outputs.length === this.graphs.score.outputs.length;
  }

  get hasBackward(): boolean {
    return this.graphs.backward.outputs.length > 0;
  }

  async run(phase: Phase, key: string, inputs: Views, outputs: Views): Promise<void> {
    const wanted = phase === 'forward' && this.#keepsNothing ? 'score' : phase;
    let session = this.#sessions.get(wanted);
    if (session === undefined) {
      session = await StageSession.open(this.graphs[wanted], this.options);
      this.#sessions.set(wanted, session);
    }
    // Lets the thread's messages in.
    await setImmediate();
    await session.run(key, inputs, outputs);
  }

  close(): void {
    for (const session of this.#sessions.values()) session.close();
    this.#sessions.clear();
  }
}

export interface LayerStages {
  readonly before: Stage;
  readonly attention: Stage;
  readonly after: Stage;
}

export class Stages {
  readonly #layers = new Map<string, LayerStages>();
  readonly #attention: Stage;
  readonly head: Stage;

  constructor(
    private readonly config: DecoderConfig,
    private readonly options: StageOptions,
    trained: Trained,
    kind: 'policy' | 'value',
  ) {
    this.#attention = new Stage(attentionBlock(config), options);
    this.head = new Stage((kind === 'policy' ? policyHead : valueHead)(config, trained), options);
  }

  layer(options: LayerStageOptions): LayerStages {
    const key = JSON.stringify(options);
    let stages = this.#layers.get(key);
    if (stages === undefined) {
      stages = {
        before: new Stage(beforeAttention(this.config, options), this.options),
        attention: this.#attention,
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
    this.head.close();
  }
}
