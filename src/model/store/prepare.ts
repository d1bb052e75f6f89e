// Weights of an imported model in the precision that an engine runs in, made at first use.

import { join } from 'node:path';
import { UnsupportedError } from '../../errors.js';
import { cpuFeatures } from '../../runtime/index.js';
import type { OnProgress } from '../../util/progress.js';
import { claim } from '../../weights/index.js';
import { buildDecoderGraphs, type EngineGraphs } from '../decoder-graphs.js';
import { decoderWeights } from '../decoder-weights.js';
import type { GraphPrecision } from '../decoder-weights-file.js';
import { decoderConfig } from './describe.js';
import { type StoredModel, workFolder } from './open.js';

export interface PrepareOptions {
  readonly onProgress?: OnProgress;
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Graphs and weights of a decoder in one precision, in `graphs/` of its folder; built at the first call, found at
 * later ones. Two processes do not build at once, and a build that was killed is begun again.
 * @param home the folder of `homeFolder(config)`
 */
export async function preparePrecision(
  home: string,
  model: StoredModel,
  precision: GraphPrecision,
  options: PrepareOptions = {},
): Promise<EngineGraphs> {
  const { id, kind, digest } = model.record;
  if (kind !== 'decoder')
    throw new UnsupportedError(`model "${id}" is an ${kind}; only a decoder can generate text`);
  const held = await claim({
    folder: workFolder(home),
    key: `prepare-${id}-${precision}`,
    kind: 'file',
    onWait: () => options.onNote?.(`waiting for another process that converts ${id} to ${precision}`),
    signal: options.signal,
  });
  const source = model.openWeights();
  try {
    const config = decoderConfig(source, {
      config: model.file('config') ?? undefined,
      generationConfig: model.file('generationConfig') ?? undefined,
    });
    return await buildDecoderGraphs({
      weights: decoderWeights(config, source),
      precision,
      folder: join(model.folder, 'graphs'),
      sourceDigest: digest,
      wideSteps: prefersFloatProducts(),
      onProgress: options.onProgress,
    });
  } finally {
    source.close();
    await held.release(true);
  }
}

/** Instructions that multiply bytes and add the products. */
const BYTE_PRODUCTS = ['avx512_vnni', 'avx_vnni', 'amx_int8', 'asimddp', 'i8mm'];

/** Whether, for many tokens at once, products of float32 run faster here than those of bytes. */
function prefersFloatProducts(): boolean {
  const features = cpuFeatures();
  return features !== null && !BYTE_PRODUCTS.some((name) => features.includes(name));
}
