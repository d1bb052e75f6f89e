// Other values in a model's parameters for a while: the reference policy, or the one that sampled earlier rollouts.

import { UnsupportedError } from '../../errors.js';
import { readTrained } from '../checkpoint/trained-files.js';
import type { TrainedPart } from '../trainer/trainable.js';

/** Stands for the model without an adapter, where a folder could be named. */
export const BASE_POLICY = 'base';

/**
 * Runs `act` with the values of a folder in the parameters; puts the present ones back whatever happens.
 * @param folder  of a checkpoint or an adapter; `base` for the model without an adapter
 * @throws {UnsupportedError} `base`, but whole weights are trained
 * @throws {FileFormatError} the folder's tensors are not those of the parameters
 */
export async function withValuesOf<Result>(
  { model, form }: TrainedPart,
  folder: string,
  act: () => Promise<Result>,
): Promise<Result> {
  const { parameters } = model;
  if (folder === BASE_POLICY && form.kind !== 'lora')
    throw new UnsupportedError('where whole weights are trained, the base model is no adapter to switch off');
  const other =
    folder === BASE_POLICY
      ? parameters.map(({ values }) => new Float32Array(values.length))
      : readTrained(folder, form, parameters);
  const present = parameters.map(({ values }) => values.slice());
  const put = (values: readonly Float32Array[]): void => {
    for (const [i, parameter] of parameters.entries()) parameter.values.set(values[i] as Float32Array);
  };
  try {
    put(other);
    return await act();
  } finally {
    put(present);
  }
}
