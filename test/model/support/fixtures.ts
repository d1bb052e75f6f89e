// Reads the stored reference values and builds graphs of the stored models.

import { buildDecoderGraphs } from '../../../src/model/decoder-graphs.js';
import {
  type DecoderWeights,
  decoderWeights,
  describeDecoder,
  type EngineGraphs,
  type GraphPrecision,
} from '../../../src/model/index.js';
import { openWeights } from '../../../src/weights/index.js';
import { fixture } from '../../support/fixtures.js';
import { temporaryFolder } from './step-runner.js';

export function ggufWeights(path: string): DecoderWeights {
  const source = openWeights(path);
  return decoderWeights(describeDecoder({ gguf: source.metadata, tensors: source.tensors }), source);
}

export function buildGraphs(
  weights: DecoderWeights,
  precision: GraphPrecision = 'fp32',
): Promise<EngineGraphs> {
  return buildDecoderGraphs({ weights, precision, folder: temporaryFolder(), sourceDigest: 'fixture' });
}

/** Tensors of a stored safetensors file, each cut into rows of its last axis. */
export function storedRows(...path: string[]): (name: string) => Float32Array[] {
  const source = openWeights(fixture(...path));
  return (name) => {
    const values = source.readFloat32(name);
    const width = source.tensors.get(name)!.shape.at(-1)!;
    return Array.from({ length: values.length / width }, (_, row) =>
      values.subarray(row * width, (row + 1) * width),
    );
  };
}

/** Largest absolute difference of two lists of rows. */
export function maxDifference(a: readonly Float32Array[], b: readonly Float32Array[]): number {
  expect(a.length).toBe(b.length);
  let worst = 0;
  for (const [row, left] of a.entries()) {
    const right = b[row]!;
    expect(left.length).toBe(right.length);
    for (let at = 0; at < left.length; at++) {
      const difference = Math.abs(left[at]! - right[at]!);
      // A NaN must never pass as a small difference.
      worst = difference <= worst ? worst : Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
    }
  }
  return worst;
}

export function argMax(logits: Float32Array): number {
  let best = 0;
  for (let id = 1; id < logits.length; id++) if (logits[id]! > logits[best]!) best = id;
  return best;
}
