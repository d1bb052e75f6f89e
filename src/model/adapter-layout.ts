import type { TensorView } from '../runtime/index.js';

export interface BoundAdapters {
  readonly inputs: Readonly<Record<string, TensorView>>;
}
