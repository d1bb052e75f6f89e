// The output layer over the hidden states that targets are drawn from, a bounded number at a time.

import type { TensorView } from '../../runtime/index.js';
import type { ScoreGradients, Scores } from '../training-model.js';
import type { Views } from './stage-session.js';
import type { SingleStage, Stage } from './stages.js';
import { floats, rowsOf, type Workspace } from './workspace.js';

/** Rows of logits that are in memory at once. */
const ROWS = 256;

export interface HeadWeights {
  readonly inputs: Views;
  readonly gradientInputs: Views;
  readonly gradientOutputs: Views;
}

/** Hidden states [N, D] before the last norm, and the int64 ids [N] that are scored. */
export interface HeadInput {
  readonly hidden: TensorView;
  readonly targetIds: BigInt64Array;
}

type ScoreName = keyof Scores;

const NAMES: Readonly<Record<'policy' | 'value', readonly ScoreName[]>> = {
  policy: ['logprobs', 'entropies'],
  value: ['values'],
};

export class HeadRunner {
  readonly #names: readonly ScoreName[];

  /** @param direction scores with the gradient of each log-probability, null where that does not do */
  constructor(
    private readonly stage: Stage,
    private readonly direction: SingleStage | null,
    private readonly weights: HeadWeights,
    private readonly workspace: Workspace,
    kind: 'policy' | 'value',
  ) {
    this.#names = NAMES[kind];
  }

  /** @param keep whether `backward` follows */
  async forward(input: HeadInput, keep: boolean): Promise<Scores> {
    const count = input.targetIds.length;
    const scores: Record<ScoreName, Float32Array> = {
      logprobs: new Float32Array(0),
      entropies: new Float32Array(0),
      values: new Float32Array(0),
    };
    for (const name of this.#names) scores[name] = new Float32Array(count);
    for (const { first, rows } of chunks(count)) {
      const outputs = this.#columns('', rows);
      const inputs = this.#inputs(input, first, rows);
      if (keep && this.direction !== null) {
        const direction = rowsOf(this.#kept(input), first, rows, input.hidden.shape[1]!);
        await this.direction.run('rows', inputs, { ...outputs, direction });
      } else await this.stage.run('score', 'rows', inputs, outputs);
      for (const name of this.#names) scores[name].set(floats(outputs[name]!), first);
    }
    return scores;
  }

  /** Adds the head's own gradients; writes d hidden [N, D]. */
  async backward(input: HeadInput, gradients: ScoreGradients, dHidden: TensorView): Promise<void> {
    if (this.direction !== null && !gradients.entropies?.some((value) => value !== 0))
      return this.#scaleDirections(input, gradients.logprobs ?? null, dHidden);
    for (const { first, rows } of chunks(input.targetIds.length)) {
      const seeds = this.#columns('.grad', rows);
      for (const name of this.#names) {
        const given = gradients[name];
        const seed = floats(seeds[`${name}.grad`]!);
        if (given === undefined) seed.fill(0);
        else seed.set(given.subarray(first, first + rows));
      }
      await this.stage.run(
        'backward',
        'rows',
        { ...this.#inputs(input, first, rows), ...this.weights.gradientInputs, ...seeds },
        {
          ...this.weights.gradientOutputs,
          'hidden.grad': rowsOf(dHidden, first, rows, input.hidden.shape[1]!),
        },
      );
    }
  }

  #scaleDirections(input: HeadInput, seeds: Float32Array | null, dHidden: TensorView): void {
    const width = input.hidden.shape[1]!;
    const [from, to] = [floats(this.#kept(input)), floats(dHidden)];
    for (let row = 0; row < input.targetIds.length; row++) {
      const seed = seeds?.[row] ?? 0;
      for (let at = row * width; at < (row + 1) * width; at++) to[at] = seed * from[at]!;
    }
  }

  #kept({ hidden }: HeadInput): TensorView {
    return this.workspace.tensor('head.direction', hidden.shape);
  }

  #columns(suffix: string, rows: number): Views {
    return Object.fromEntries(
      this.#names.map((name) => [
        `${name}${suffix}`,
        this.workspace.tensor(`head.${name}${suffix}`, [rows, 1]),
      ]),
    );
  }

  #inputs({ hidden, targetIds }: HeadInput, first: number, rows: number): Views {
    const targets: TensorView = {
      type: 'int64',
      shape: [rows, 1],
      data: targetIds.subarray(first, first + rows),
    };
    return { hidden: rowsOf(hidden, first, rows, hidden.shape[1]!), targets, ...this.weights.inputs };
  }
}

function* chunks(count: number): Iterable<{ first: number; rows: number }> {
  for (let first = 0; first < count; first += ROWS) yield { first, rows: Math.min(ROWS, count - first) };
}
