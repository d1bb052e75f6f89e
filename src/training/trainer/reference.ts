// The reference policy that a user names, looked at before a run begins.

import { InvalidInputError } from '../../errors.js';
import { type Adapter, type DecoderConfig, modulePath, readAdapter } from '../../model/index.js';
import { BASE_POLICY } from '../step/values.js';
import { ALL_LINEAR } from './decoder.js';

/**
 * Names the content of a reference policy. Its values take the place of the trained ones for a pass, so it must change
 * the same layers at the same rank; another scale is made up for when it is read.
 * @param folder   PEFT folder, or `base`
 * @param start    adapter that the run starts from; null: a fresh one of this rank on all linear layers
 * @returns        digest; `base` for the model without an adapter
 * @throws {InvalidInputError} another rank or other layers
 */
export function referenceDigest(
  folder: string,
  decoder: DecoderConfig,
  start: Adapter | null,
  rank: number,
): string {
  if (folder === BASE_POLICY) return BASE_POLICY;
  const reference = readAdapter(folder, decoder);
  const trained = new Map(
    start === null
      ? Array.from({ length: decoder.layers }, (_, layer) => layer).flatMap((layer) =>
          ALL_LINEAR.map((module) => [modulePath(layer, module), rank] as const),
        )
      : start.modules.map((item) => [modulePath(item.layer, item.module), item.rank] as const),
  );
  const refuse = (fault: string): never => {
    throw new InvalidInputError(`${folder} cannot be the reference policy: ${fault}`, 'reference');
  };
  for (const item of reference.modules) {
    const path = modulePath(item.layer, item.module);
    const wanted = trained.get(path);
    if (wanted === undefined) refuse(`it changes ${path}, which this run does not train`);
    if (wanted !== item.rank) refuse(`its rank is ${item.rank}, this run trains ${wanted}`);
    trained.delete(path);
  }
  const [missing] = trained.keys();
  if (missing !== undefined) refuse(`it does not change ${missing}, which this run trains`);
  return reference.digest;
}
