// The run over all layers: forward keeps what backward needs, or computes it again where memory is short.

import { InvalidInputError, NonFiniteError } from '../../errors.js';
import type { DecoderConfig, RopeTables } from '../../model/index.js';
import type { TensorView } from '../../runtime/index.js';
import type { MicroBatch, ScoreGradients, Scores, TrainingLane } from '../training-model.js';
import type { Arena } from './arena.js';
import { BlockPlanner } from './attention-blocks.js';
import type { HeadInput, HeadRunner } from './head-runner.js';
import { type KeptActivations, planKept } from './kept-activations.js';
import type { LayerContext, LayerRunner, Place } from './layer-runner.js';
import { type PackedBatch, packBatch } from './packing.js';
import type { ParameterSet } from './parameters.js';
import { floats, type Workspace } from './workspace.js';

export interface LayeredLaneParts {
  readonly config: DecoderConfig;
  readonly parameters: ParameterSet;
  readonly layers: readonly LayerRunner[];
  /** The first layer whose backward run is needed. */
  readonly lowest: number;
  readonly head: HeadRunner;
  /** f32 [V, D] */
  readonly embedding: Float32Array;
  /** f32 [V, D] where the table is trained. */
  readonly embeddingGradient: Float32Array | null;
  readonly rope: (positions: number) => RopeTables;
  readonly workspace: Workspace;
  /** For what is kept of a batch. */
  readonly arena: Arena;
  readonly activationBytes: number;
  /** Brings the weights up to the parameters' values. */
  refresh(): Promise<void>;
}

/** A batch that was scored and waits for its gradients. */
interface Forwarded {
  readonly batch: PackedBatch;
  readonly context: LayerContext;
  readonly kept: KeptActivations;
}

/** Where a run without a backward run, or a layer that will be run again, leaves its activations. */
const SCRATCH: Place = { name: 'scratch', lasts: false, keep: false, probabilities: false };

/** Where a layer's activations are for its backward run. */
function keeping(
  layer: number,
  { layersFrom, probabilitiesFrom, probabilitiesAgain }: KeptActivations,
): Place {
  return layer >= layersFrom
    ? { name: `${layer}`, lasts: true, keep: true, probabilities: layer >= probabilitiesFrom }
    : { name: 'again', lasts: false, keep: true, probabilities: probabilitiesAgain };
}

/** Hidden states after the last layer. */
const LAST = 'last';

/** Scores of a batch without targets. */
const NOTHING: Scores = {
  logprobs: new Float32Array(0),
  entropies: new Float32Array(0),
  values: new Float32Array(0),
};

export class LayeredLane implements TrainingLane {
  readonly #planner: BlockPlanner;
  #forwarded: Forwarded | null = null;
  #rope: RopeTables | null = null;

  constructor(private readonly parts: LayeredLaneParts) {
    this.#planner = new BlockPlanner(parts.config.heads / parts.config.kvHeads);
  }

  async score(batch: MicroBatch): Promise<Scores> {
    const packed = packBatch(batch, this.parts.config);
    this.#forwarded = null;
    if (packed.tokens === 0) return NOTHING;
    await this.parts.refresh();
    const context = this.#context(packed);
    const last = this.parts.layers.length;
    const place = (layer: number) => this.#hidden(layer === last ? LAST : `x.${layer % 2}`, packed);
    this.#embed(packed, place(0));
    for (const [layer, runner] of this.parts.layers.entries())
      await runner.forward(context, SCRATCH, place(layer), place(layer + 1));
    return this.#scores(packed, false);
  }

  async forward(batch: MicroBatch): Promise<Scores> {
    const packed = packBatch(batch, this.parts.config);
    this.#forwarded = null;
    const context = this.#context(packed);
    this.parts.arena.begin();
    const kept = planKept(this.parts.config, packed.tokens, context.blocks, this.parts.activationBytes);
    if (packed.tokens === 0) {
      this.#forwarded = { batch: packed, context, kept };
      return NOTHING;
    }
    await this.parts.refresh();
    this.#embed(packed, this.#hidden('x.0', packed));
    for (const [layer, runner] of this.parts.layers.entries()) {
      const end = layer + 1 === this.parts.layers.length;
      const [x, y] = [
        this.#hidden(`x.${layer}`, packed),
        this.#hidden(end ? LAST : `x.${layer + 1}`, packed),
      ];
      const place = layer >= kept.layersFrom ? keeping(layer, kept) : SCRATCH;
      await runner.forward(context, place, x, y);
    }
    const scores = await this.#scores(packed, true);
    this.#forwarded = { batch: packed, context, kept };
    return scores;
  }

  async backward(gradients: ScoreGradients): Promise<void> {
    const forwarded = this.#forwarded;
    if (forwarded === null) throw new InvalidInputError('backward needs a batch that was forwarded before');
    checkLengths(gradients, forwarded.batch.rows.length);
    this.#forwarded = null;
    const { batch, context, kept } = forwarded;
    if (batch.tokens === 0) return;
    const { layers, lowest, workspace } = this.parts;
    const last = layers.length;
    const flowing = (layer: number) =>
      this.#hidden(layer === last ? `grad.${LAST}` : `grad.x.${layer % 2}`, batch);
    await this.parts.head.backward(this.#headInput(batch), gradients, flowing(last));
    for (let layer = last - 1; layer >= lowest; layer--) {
      const runner = layers[layer]!;
      const x = this.#hidden(`x.${layer}`, batch);
      const place = keeping(layer, kept);
      if (layer < kept.layersFrom)
        await runner.forward(context, place, x, workspace.tensor('x.again', flowing(layer + 1).shape));
      await runner.backward(context, place, x, flowing(layer + 1), flowing(layer));
    }
    this.#embeddingBackward(batch, flowing(0));
    this.#checkGradients();
  }

  #context(batch: PackedBatch): LayerContext {
    // RotaryEmbedding refuses more rows than its tables have, whatever their positions.
    const positions = batch.tokens;
    const half = this.parts.config.headDim / 2;
    if (this.#rope === null || this.#rope.cosines.length < positions * half)
      this.#rope = this.parts.rope(positions);
    const table = (values: Float32Array): TensorView => ({
      type: 'float32',
      shape: [positions, half],
      data: values.subarray(0, positions * half),
    });
    return {
      workspace: this.parts.workspace,
      lasting: this.parts.arena,
      blocks: this.#planner.plan(batch.spans),
      tokens: batch.tokens,
      rows: batch.rows,
      rotary: {
        positions: { type: 'int64', shape: [1, batch.tokens], data: batch.positions },
        cosines: table(this.#rope.cosines),
        sines: table(this.#rope.sines),
      },
    };
  }

  /** Hidden states or their gradients: a row for each token, after the last layer for each target. */
  #hidden(name: string, { tokens, rows }: PackedBatch): TensorView {
    const count = name.endsWith(LAST) ? rows.length : tokens;
    return this.parts.workspace.tensor(name, [count, this.parts.config.hiddenSize]);
  }

  #headInput(batch: PackedBatch): HeadInput {
    return { hidden: this.#hidden(LAST, batch), targetIds: batch.targetIds };
  }

  #embed({ tokenIds }: PackedBatch, target: TensorView): void {
    const { embedding, config } = this.parts;
    const width = config.hiddenSize;
    for (const [row, id] of tokenIds.entries())
      floats(target).set(embedding.subarray(id * width, (id + 1) * width), row * width);
  }

  #embeddingBackward({ tokenIds }: PackedBatch, dx: TensorView): void {
    const { embeddingGradient: sum, config } = this.parts;
    if (sum === null) return;
    const width = config.hiddenSize;
    const values = floats(dx);
    for (const [row, id] of tokenIds.entries())
      for (let at = 0; at < width; at++)
        sum[id * width + at] = sum[id * width + at]! + values[row * width + at]!;
  }

  async #scores(batch: PackedBatch, keep: boolean): Promise<Scores> {
    const scores = await this.parts.head.forward(this.#headInput(batch), keep);
    for (const [name, values] of Object.entries(scores) as [keyof Scores, Float32Array][]) {
      const bad = values.findIndex((value) => !Number.isFinite(value));
      if (bad >= 0) throw new NonFiniteError(`${name}: ${batch.describe(bad)} is ${values[bad]}`);
    }
    return scores;
  }

  #checkGradients(): void {
    for (const { name, gradient } of this.parts.parameters.all) {
      // Millions of numbers: a sum is quicker than a question to each, and unfinished if one of them is.
      let total = 0;
      for (let at = 0; at < gradient.length; at++) total += gradient[at]!;
      if (Number.isFinite(total)) continue;
      const bad = gradient.findIndex((value) => !Number.isFinite(value));
      throw new NonFiniteError(`gradient of ${name} is ${gradient[bad]} at element ${bad}`);
    }
  }
}

function checkLengths(gradients: ScoreGradients, targets: number): void {
  for (const [name, values] of Object.entries(gradients) as [string, Float32Array | undefined][])
    if (values !== undefined && values.length !== targets)
      throw new InvalidInputError(`${name}: ${values.length} gradients for ${targets} targets`, name);
}
