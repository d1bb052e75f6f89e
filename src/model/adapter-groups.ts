// The linear layers that adapters may change, and how they are fused: query, key and value are one product, so are gate and up.

import type { DecoderConfig } from './decoder-config.js';
import { type LinearModule, linearShape } from './decoder-weights.js';

export type AdapterGroup = 'qkv' | 'o' | 'gate_up' | 'down';

export const ADAPTER_GROUPS: readonly AdapterGroup[] = ['qkv', 'o', 'gate_up', 'down'];

/** Modules of a group in the order of its output columns. */
export const GROUP_MODULES: Readonly<Record<AdapterGroup, readonly LinearModule[]>> = {
  qkv: ['q', 'k', 'v'],
  o: ['o'],
  gate_up: ['gate', 'up'],
  down: ['down'],
};

export interface GroupShape {
  readonly inputs: number;
  /** Columns of all its modules. */
  readonly outputs: number;
}

export function groupShape(config: DecoderConfig, group: AdapterGroup): GroupShape {
  const shapes = GROUP_MODULES[group].map((module) => linearShape(config, module));
  return { inputs: shapes[0]![1], outputs: shapes.reduce((sum, [out]) => sum + out, 0) };
}
