// One decoder layer forward and back over a packed batch.

import type { DecoderConfig } from '../../model/index.js';
import type { TensorView } from '../../runtime/index.js';
import type { Block } from './attention-blocks.js';
import type { LayerTensors } from './layer-weights.js';
import type { Views } from './stage-session.js';
import type { LayerStages, Stage } from './stages.js';
import { floats, pickRows, rowsOf, spreadRows, type Workspace } from './workspace.js';

/** What all layers share in a run. */
export interface LayerContext {
  readonly workspace: Workspace;
  readonly blocks: readonly Block[];
  readonly tokens: number;
  /** Rows that targets are drawn from: all that is needed of the last layer's result. */
  readonly rows: Int32Array;
  /** `positions`, `cosines`, `sines`. */
  readonly rotary: Views;
}

const GRADIENTS: Place = { name: 'grad', keep: false, probabilities: false };

/** What flows back from the part after attention. */
const WIDE = ['attended.grad', 'residual.grad'] as const;

/** Where the activations of a layer lie. */
export interface Place {
  /** Prefix of their names in the workspace. */
  readonly name: string;
  /** Whether a backward run is to find them there. */
  readonly keep: boolean;
  /** Whether the probabilities of attention are among them. */
  readonly probabilities: boolean;
}

type ForwardPhase = 'score' | 'forward';

export class LayerRunner {
  constructor(
    private readonly config: DecoderConfig,
    private readonly layer: number,
    private readonly weights: LayerTensors,
    private readonly stages: LayerStages,
    /** The last layer goes on with the rows of targets only, once its attention has seen all. */
    private readonly last: boolean,
  ) {}

  /** x [T, D] to y [T, D], or [N, D] of the last layer. */
  async forward(context: LayerContext, place: Place, x: TensorView, y: TensorView): Promise<void> {
    const { before, after } = this.stages;
    const phase = place.keep ? 'forward' : 'score';
    const first = this.#results(before, phase, context, place);
    const attended = this.#attended(context, place.name);
    await before.run(phase, this.#key(place), { x, ...this.weights.inputs, ...context.rotary }, first);
    const attention = place.probabilities ? this.stages.attentionKeeping : this.stages.attention;
    for (const [index, block] of context.blocks.entries()) {
      const { queries, keys } = this.#parts(block, first);
      const o = this.#rows(attended, block.start, block.queries);
      const outputs = { o, ...this.#probabilities(context, place, index) };
      await attention.run('forward', 'block', { ...queries, ...keys, mask: block.mask }, outputs);
    }
    const second = { ...this.#results(after, phase, context, place, this.last), y };
    const inputs = { ...this.#targetRows(context, { x, attended }), ...this.weights.inputs };
    await after.run(phase, this.#key(place), inputs, second);
  }

  /**
   * Adds the gradients of what is trained in this layer.
   * @param place where `forward` left the activations
   * @param dy gradient of y
   * @param dx memory for the gradient of x, left as it is where nothing below is trained
   */
  async backward(
    context: LayerContext,
    place: Place,
    x: TensorView,
    dy: TensorView,
    dx: TensorView,
  ): Promise<void> {
    const { before, after } = this.stages;
    const { inputs, gradientInputs, gradientOutputs } = this.weights;
    const attended = this.#attended(context, place.name);
    const known = this.#results(after, 'forward', context, place, this.last);
    const dAttended = this.#attended(context, 'grad');
    const residual = context.workspace.tensor('grad.residual', x.shape);
    const whole = { 'attended.grad': dAttended, 'residual.grad': residual };
    const wanted = this.last ? this.#narrow(context, whole) : whole;
    await after.run(
      'backward',
      this.#key(place),
      { ...this.#targetRows(context, { x, attended }), ...known, ...inputs, ...gradientInputs, 'y.grad': dy },
      { ...gradientOutputs, ...wanted },
    );
    if (!before.hasBackward) return;
    if (this.last) for (const name of WIDE) spreadRows(wanted[name]!, context.rows, whole[name]!);
    const first = this.#results(before, 'forward', context, place);
    const flowing = this.#results(before, 'score', context, GRADIENTS);
    await this.#attentionBackward(context, place, { ...first, attended, dAttended }, flowing);
    await before.run(
      'backward',
      this.#key(place),
      {
        x,
        ...first,
        ...inputs,
        ...gradientInputs,
        ...context.rotary,
        'q.grad': flowing['q']!,
        'k.grad': flowing['k']!,
        'v.grad': flowing['v']!,
        'residual.grad': residual,
      },
      { ...gradientOutputs, 'x.grad': dx },
    );
  }

  async #attentionBackward(context: LayerContext, place: Place, known: Views, flowing: Views) {
    const attention = place.probabilities ? this.stages.attentionKeeping : this.stages.attention;
    for (const name of ['k', 'v']) floats(flowing[name]!).fill(0);
    for (const [index, block] of context.blocks.entries()) {
      const { queries, keys } = this.#parts(block, known);
      const gradients = this.#parts(block, flowing);
      const [k, v] = [gradients.keys.k, gradients.keys.v];
      await attention.run(
        'backward',
        'block',
        {
          ...queries,
          ...keys,
          mask: block.mask,
          ...this.#probabilities(context, place, index),
          o: this.#rows(known['attended']!, block.start, block.queries),
          'o.grad': this.#rows(known['dAttended']!, block.start, block.queries),
          'k.sum': k,
          'v.sum': v,
        },
        { 'q.grad': gradients.queries.q, 'k.grad': k, 'v.grad': v },
      );
    }
  }

  /** A block's queries and keys, from tensors of the whole batch. */
  #parts({ start, queries, keysStart, keys }: Block, whole: Views) {
    const width = this.config.kvHeads * this.config.headDim;
    return {
      queries: { q: this.#rows(whole['q']!, start, queries) },
      keys: {
        k: rowsOf(whole['k']!, keysStart, keys, width),
        v: rowsOf(whole['v']!, keysStart, keys, width),
      },
    };
  }

  #rows(view: TensorView, start: number, count: number): TensorView {
    return rowsOf(view, start, count, this.config.heads * this.config.headDim);
  }

  #attended({ workspace, tokens }: LayerContext, place: string): TensorView {
    return workspace.tensor(`${place}.attended`, [tokens, this.config.heads * this.config.headDim]);
  }

  /** Memory for a stage's results; its shapes name no open axis but the tokens. */
  #results(
    stage: Stage,
    phase: ForwardPhase,
    { workspace, tokens, rows }: LayerContext,
    place: Place,
    narrow = false,
  ): Views {
    const entries = stage.results(phase).map(({ name, shape }) => {
      const sizes = shape.map((size) => (size === 'T' ? (narrow ? rows.length : tokens) : Number(size)));
      return [name, workspace.tensor(`${place.name}.${name}`, sizes)];
    });
    return Object.fromEntries(entries);
  }

  /** Of the last layer the rows of targets, else all. */
  #targetRows(context: LayerContext, whole: Views): Views {
    if (!this.last) return whole;
    const picked = this.#narrow(context, whole);
    for (const [name, view] of Object.entries(whole)) pickRows(view, context.rows, picked[name]!);
    return picked;
  }

  /** Memory for the rows of targets of some tensors. */
  #narrow({ workspace, rows }: LayerContext, whole: Views): Views {
    return Object.fromEntries(
      Object.entries(whole).map(([name, { shape }]) => [
        name,
        workspace.tensor(`rows.${name}`, [rows.length, shape[1]!]),
      ]),
    );
  }

  #probabilities({ workspace, blocks }: LayerContext, place: Place, index: number): Views {
    if (!place.probabilities) return {};
    const { queries, keys } = blocks[index]!;
    const { heads, kvHeads } = this.config;
    const shape = [kvHeads, (heads / kvHeads) * queries, keys];
    return { probabilities: workspace.tensor(`${place.name}.probabilities.${index}`, shape) };
  }

  #key(place: Place): string {
    return `${this.layer} ${place.name}`;
  }
}
