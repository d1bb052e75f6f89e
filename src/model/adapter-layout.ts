// Adapters side by side, as the step graph takes them: every version has its own rank columns in each group,
// and a mask says which row of the batch uses which. So one run serves rows on different versions.

import type { TensorView } from '../runtime/index.js';
import type { Adapter, AdapterModule } from './adapter.js';
import { ADAPTER_GROUPS, type AdapterGroup, GROUP_MODULES, groupShape } from './adapter-groups.js';
import type { DecoderConfig } from './decoder-config.js';
import { linearShape } from './decoder-weights.js';

/** A layout as plain data, which may move between threads. */
export interface LayoutData {
  /** Rank columns of each group, at least 1. */
  readonly ranks: Readonly<Record<AdapterGroup, number>>;
  /** For each group the columns of each adapter. */
  readonly spans: Readonly<Record<AdapterGroup, readonly Span[]>>;
  /** Graph inputs `lora.<layer>.<group>.a` f32 [in, R] and `.b` f32 [R, out], scales included. */
  readonly inputs: Readonly<Record<string, TensorView>>;
}

export interface AdapterLayout extends LayoutData {
  /**
   * Graph inputs `lora_mask.<group>` f32 [B, 1, R] for the rows of a batch.
   * @param rows  index of an adapter for each row; null for the base model
   */
  masks(rows: readonly (number | null)[]): Readonly<Record<string, TensorView>>;
}

/** Place of one adapter's columns in a group. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Lays adapters side by side. Costs one copy of their weights; the same layout serves any batch of these adapters. */
export function layOutAdapters(config: DecoderConfig, adapters: readonly Adapter[]): AdapterLayout {
  const inputs: Record<string, TensorView> = {};
  const spans = {} as Record<AdapterGroup, readonly Span[]>;
  const ranks = {} as Record<AdapterGroup, number>;
  for (const group of ADAPTER_GROUPS) {
    spans[group] = spansOf(adapters.map((adapter) => widthOf(adapter, group)));
    ranks[group] = Math.max(1, spans[group].at(-1)?.end ?? 0);
    const { inputs: inner, outputs } = groupShape(config, group);
    for (let layer = 0; layer < config.layers; layer++) {
      const a = new Float32Array(inner * ranks[group]);
      const b = new Float32Array(ranks[group] * outputs);
      for (const [index, adapter] of adapters.entries())
        placeAdapter(
          { config, group, rank: ranks[group], a, b },
          modulesOf(adapter, layer, group),
          spans[group][index]!,
        );
      inputs[`lora.${layer}.${group}.a`] = { type: 'float32', shape: [inner, ranks[group]], data: a };
      inputs[`lora.${layer}.${group}.b`] = { type: 'float32', shape: [ranks[group], outputs], data: b };
    }
  }
  return adapterLayout({ ranks, spans, inputs });
}

export function adapterLayout(data: LayoutData): AdapterLayout {
  const { spans, ranks } = data;
  return {
    ...data,
    masks: (rows) =>
      Object.fromEntries(
        ADAPTER_GROUPS.map((group) => [`lora_mask.${group}`, maskOf(rows, spans[group], ranks[group])]),
      ),
  };
}

/** One layout of all adapters of several; costs a copy of their weights, much less than laying them out anew. */
export function joinLayouts(config: DecoderConfig, layouts: readonly LayoutData[]): AdapterLayout {
  const inputs: Record<string, TensorView> = {};
  const spans = {} as Record<AdapterGroup, readonly Span[]>;
  const ranks = {} as Record<AdapterGroup, number>;
  for (const group of ADAPTER_GROUPS) {
    const widths = layouts.map((layout) => layout.ranks[group]);
    const places = spansOf(widths);
    ranks[group] = places.at(-1)!.end;
    spans[group] = layouts.flatMap((layout, index) =>
      layout.spans[group].map(({ start, end }) => ({
        start: places[index]!.start + start,
        end: places[index]!.start + end,
      })),
    );
    const { inputs: inner, outputs } = groupShape(config, group);
    for (let layer = 0; layer < config.layers; layer++) {
      const [nameA, nameB] = [`lora.${layer}.${group}.a`, `lora.${layer}.${group}.b`];
      const a = new Float32Array(inner * ranks[group]);
      const b = new Float32Array(ranks[group] * outputs);
      for (const [index, layout] of layouts.entries()) {
        const { start } = places[index]!;
        b.set(layout.inputs[nameB]!.data as Float32Array, start * outputs);
        placeColumns(a, ranks[group], start, layout.inputs[nameA]!.data as Float32Array, widths[index]!);
      }
      inputs[nameA] = { type: 'float32', shape: [inner, ranks[group]], data: a };
      inputs[nameB] = { type: 'float32', shape: [ranks[group], outputs], data: b };
    }
  }
  return adapterLayout({ ranks, spans, inputs });
}

/** Writes a matrix of `width` columns into one of `columns`, from column `start` on. */
function placeColumns(
  target: Float32Array,
  columns: number,
  start: number,
  source: Float32Array,
  width: number,
): void {
  for (let from = 0, to = start; from < source.length; from += width, to += columns)
    for (let i = 0; i < width; i++) target[to + i] = source[from + i]!;
}

function modulesOf(adapter: Adapter, layer: number, group: AdapterGroup): readonly AdapterModule[] {
  return adapter.modules.filter((item) => item.layer === layer && GROUP_MODULES[group].includes(item.module));
}

/** Columns that an adapter needs in a group: the most that one of its layers takes. */
function widthOf(adapter: Adapter, group: AdapterGroup): number {
  const widths = new Map<number, number>();
  for (const { layer, module, rank } of adapter.modules)
    if (GROUP_MODULES[group].includes(module)) widths.set(layer, (widths.get(layer) ?? 0) + rank);
  return Math.max(0, ...widths.values());
}

function spansOf(widths: readonly number[]): readonly Span[] {
  let end = 0;
  return widths.map((width) => {
    const start = end;
    end += width;
    return { start, end };
  });
}

interface Target {
  readonly config: DecoderConfig;
  readonly group: AdapterGroup;
  readonly rank: number;
  /** f32 [in, rank] */
  readonly a: Float32Array;
  /** f32 [rank, out of the group] */
  readonly b: Float32Array;
}

/** Writes the modules of one adapter: A turned round, B turned round, scaled and moved to its module's columns. */
function placeAdapter(target: Target, modules: readonly AdapterModule[], span: Span): void {
  const { config, group, rank, a, b } = target;
  const { inputs, outputs } = groupShape(config, group);
  let column = span.start;
  for (const item of modules) {
    let first = 0;
    for (const module of GROUP_MODULES[group]) {
      if (module === item.module) break;
      first += linearShape(config, module)[0];
    }
    const [out] = linearShape(config, item.module);
    for (let r = 0; r < item.rank; r++) {
      for (let i = 0; i < inputs; i++) a[i * rank + column + r] = item.a[r * inputs + i]!;
      const row = (column + r) * outputs + first;
      for (let o = 0; o < out; o++) b[row + o] = item.b[o * item.rank + r]! * item.scale;
    }
    column += item.rank;
  }
}

function maskOf(rows: readonly (number | null)[], spans: readonly Span[], rank: number): TensorView {
  const data = new Float32Array(rows.length * rank);
  for (const [row, index] of rows.entries()) {
    if (index === null) continue;
    const span = spans[index];
    if (span === undefined) throw new RangeError(`row ${row} asks for adapter ${index} of ${spans.length}`);
    data.fill(1, row * rank + span.start, row * rank + span.end);
  }
  return { type: 'float32', shape: [rows.length, 1, rank], data };
}
