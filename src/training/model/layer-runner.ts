// One decoder layer forward and back over a packed batch.

import type { DecoderConfig } from '../../model/index.js';
import type { TensorView } from '../../runtime/index.js';
import type { Block } from './attention-blocks.js';
import { type LayerTensors, suffixed } from './layer-weights.js';
import type { Views } from './stage-session.js';
import type { LayerStages, Stage } from './stages.js';
import { floats, pickRows, rowsOf, spreadRows, type Tensors } from './workspace.js';

/** What all layers share in a run. */
export interface LayerContext {
  /** Memory that the next layer overwrites. */
  readonly workspace: Tensors;
  /** Memory that lasts until the batch's backward run. */
  readonly lasting: Tensors;
  readonly blocks: readonly Block[];
  readonly tokens: number;
  /** Rows that targets are drawn from: all that is needed of the last layer's result. */
  readonly rows: Int32Array;
  /** `positions`, `cosines`, `sines`. */
  readonly rotary: Views;
}

const GRADIENTS: Place = { name: 'grad', lasts: false, keep: false, probabilities: false };

/** Where the activations of a layer lie. */
export interface Place {
  /** Prefix of their names. */
  readonly name: string;
  /** Whether they outlive the next layer. */
  readonly lasts: boolean;
  /** Whether a backward run is to find them there. */
  readonly keep: boolean;
  /** Whether the probabilities of attention are among them. */
  readonly probabilities: boolean;
}

const memoryOf = ({ workspace, lasting }: LayerContext, place: Place): Tensors =>
  place.lasts ? lasting : workspace;

type ForwardPhase = 'score' | 'forward';

/** What the backward run of attention reads, and the gradients that it adds to. */
interface AttentionViews {
  readonly first: Views;
  readonly attended: Views;
  readonly dAttended: Views;
  readonly flowing: Views;
}

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
    const attended = this.#attended(context, place);
    await before.run(phase, this.#key(place), { x, ...this.weights.inputs, ...context.rotary }, first);
    const attention = place.probabilities ? this.stages.attentionKeeping : this.stages.attention;
    for (const [index, block] of context.blocks.entries()) {
      const inputs = { ...this.#partsOf(block, first), mask: block.mask };
      const outputs = { ...this.#outputsOf(block, attended), ...this.#probabilities(context, place, index) };
      await attention.run('forward', 'block', inputs, outputs);
    }
    const second = { ...this.#results(after, phase, context, place, this.last), y };
    const inputs = { ...this.#targetRows(context, { x, ...attended }), ...this.weights.inputs };
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
    const attended = this.#attended(context, place);
    const known = this.#results(after, 'forward', context, place, this.last);
    const dAttended = this.#attended(context, GRADIENTS);
    const residual = context.workspace.tensor('grad.residual', x.shape);
    const whole = { ...suffixed(dAttended, 'grad'), 'residual.grad': residual };
    const wanted: Views = this.last ? this.#narrow(context, whole) : whole;
    await after.run(
      'backward',
      this.#key(place),
      {
        ...this.#targetRows(context, { x, ...attended }),
        ...known,
        ...inputs,
        ...gradientInputs,
        'y.grad': dy,
      },
      { ...gradientOutputs, ...wanted },
    );
    if (!before.hasBackward) return;
    if (this.last)
      for (const [name, view] of Object.entries(whole)) spreadRows(wanted[name]!, context.rows, view);
    const first = this.#results(before, 'forward', context, place);
    const flowing = this.#results(before, 'score', context, GRADIENTS);
    await this.#attentionBackward(context, place, { first, attended, dAttended, flowing });
    await before.run(
      'backward',
      this.#key(place),
      {
        x,
        ...first,
        ...inputs,
        ...gradientInputs,
        ...context.rotary,
        ...suffixed(flowing, 'grad'),
        'residual.grad': residual,
      },
      { ...gradientOutputs, 'x.grad': dx },
    );
  }

  async #attentionBackward(context: LayerContext, place: Place, views: AttentionViews) {
    const { first, attended, dAttended, flowing } = views;
    const attention = place.probabilities ? this.stages.attentionKeeping : this.stages.attention;
    for (const [name, view] of Object.entries(flowing)) if (!name.startsWith('q.')) floats(view).fill(0);
    for (const [index, block] of context.blocks.entries()) {
      const gradients = this.#partsOf(block, flowing);
      await attention.run(
        'backward',
        'block',
        {
          ...this.#partsOf(block, first),
          mask: block.mask,
          ...this.#probabilities(context, place, index),
          ...this.#outputsOf(block, attended),
          ...suffixed(this.#outputsOf(block, dAttended), 'grad'),
          ...suffixed(gradients, 'sum'),
        },
        suffixed(gradients, 'grad'),
      );
    }
  }

  /** A block's queries, keys and values, from those of the whole batch. */
  #partsOf(block: Block, whole: Views): Views {
    const { keysStart, keys } = block;
    const parts: Record<string, TensorView> = {};
    for (let head = 0; head < this.config.kvHeads; head++) {
      parts[`q.${head}`] = this.#queryRows(whole[`q.${head}`]!, block);
      for (const name of [`k.${head}`, `v.${head}`])
        parts[name] = rowsOf(whole[name]!, keysStart, keys, this.config.headDim);
    }
    return parts;
  }

  /** A block's part of what attention gives. */
  #outputsOf(block: Block, attended: Views): Views {
    return Object.fromEntries(
      Object.values(attended).map((view, head) => [`o.${head}`, this.#queryRows(view, block)]),
    );
  }

  #queryRows(view: TensorView, { start, queries }: Block): TensorView {
    return rowsOf(view, start, queries, view.shape[1]!);
  }

  /** `attended.<i>` [T, G * headDim] of each key head i. */
  #attended(context: LayerContext, place: Place): Views {
    const { heads, kvHeads, headDim } = this.config;
    const shape = [context.tokens, (heads / kvHeads) * headDim];
    const names = Array.from({ length: kvHeads }, (_, head) => `attended.${head}`);
    const memory = memoryOf(context, place);
    return Object.fromEntries(names.map((name) => [name, memory.tensor(`${place.name}.${name}`, shape)]));
  }

  /** Memory for a stage's results; its shapes name no open axis but the tokens. */
  #results(stage: Stage, phase: ForwardPhase, context: LayerContext, place: Place, narrow = false): Views {
    const { tokens, rows } = context;
    const memory = memoryOf(context, place);
    const entries = stage.results(phase).map(({ name, shape }) => {
      const sizes = shape.map((size) => (size === 'T' ? (narrow ? rows.length : tokens) : Number(size)));
      return [name, memory.tensor(`${place.name}.${name}`, sizes)];
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

  #probabilities(context: LayerContext, place: Place, index: number): Views {
    if (!place.probabilities) return {};
    const { queries, keys } = context.blocks[index]!;
    const { heads, kvHeads } = this.config;
    const shape = [(heads / kvHeads) * queries, keys];
    const names = Array.from({ length: kvHeads }, (_, head) => `probabilities.${head}`);
    const memory = memoryOf(context, place);
    return Object.fromEntries(
      names.map((name) => [name, memory.tensor(`${place.name}.${name}.${index}`, shape)]),
    );
  }

  #key(place: Place): string {
    return `${this.layer} ${place.name}`;
  }
}
