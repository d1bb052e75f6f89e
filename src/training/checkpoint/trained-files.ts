// Trained values as files that others open: a PEFT folder for LoRA, a safetensors file for whole weights.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileFormatError, NotFoundError } from '../../errors.js';
import { type AdapterConfig, rankAndScale, readAdapterConfig } from '../../model/index.js';
import { writeFileAtomic } from '../../util/atomic-file.js';
import { openSafetensorsFile, type PlainType, writeSafetensors } from '../../weights/index.js';
import type { Parameter } from '../training-model.js';

/** LoRA of one rank on the same linear layers of every block. */
export interface LoraShape {
  readonly rank: number;
  readonly alpha: number;
  /** As PEFT names them: `q_proj`, `down_proj`, ... */
  readonly targetModules: readonly string[];
}

/** What is trained, and how it is written. */
export type TrainedForm =
  | { readonly kind: 'lora'; readonly lora: LoraShape; readonly baseModel: string }
  | { readonly kind: 'whole' };

export const ADAPTER_CONFIG = 'adapter_config.json';
export const ADAPTER_WEIGHTS = 'adapter_model.safetensors';
export const WHOLE_WEIGHTS = 'model.safetensors';
/** Parameters of a critic that are no part of its adapter. */
const VALUE_HEAD = 'value_head.safetensors';

/** Whether a folder, such as a checkpoint, has all weights and no adapter. */
export const holdsWholeWeights = (folder: string): boolean =>
  existsSync(join(folder, WHOLE_WEIGHTS)) && !existsSync(join(folder, ADAPTER_CONFIG));

const isValueHead = (name: string): boolean => name.startsWith('value_head.');

/** Settings under PEFT's names; what we do not use has PEFT's default. */
function adapterConfigJson({ rank, alpha, targetModules }: LoraShape, baseModel: string): object {
  return {
    alpha_pattern: {},
    auto_mapping: null,
    base_model_name_or_path: baseModel,
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
    init_lora_weights: true,
    layers_pattern: null,
    layers_to_transform: null,
    lora_alpha: alpha,
    lora_dropout: 0,
    modules_to_save: null,
    peft_type: 'LORA',
    r: rank,
    rank_pattern: {},
    revision: null,
    target_modules: [...targetModules],
    task_type: 'CAUSAL_LM',
    use_dora: false,
    use_rslora: false,
  };
}

/**
 * Writes all trained values.
 * @param type  F32 keeps them exactly; F16 halves the file, for adapters that are handed on
 */
export async function writeTrained(
  folder: string,
  form: TrainedForm,
  parameters: readonly Parameter[],
  type: PlainType = 'F32',
): Promise<void> {
  const tensors = (chosen: readonly Parameter[]) =>
    chosen.map(({ name, shape, values }) => ({ name, shape, type, data: () => values }));
  const metadata = { format: 'pt' };
  const head = parameters.filter(({ name }) => isValueHead(name));
  const body = parameters.filter(({ name }) => !isValueHead(name));
  const weights = form.kind === 'lora' ? ADAPTER_WEIGHTS : WHOLE_WEIGHTS;
  await writeSafetensors(join(folder, weights), tensors(body), metadata);
  if (head.length > 0) await writeSafetensors(join(folder, VALUE_HEAD), tensors(head), metadata);
  if (form.kind === 'whole') return;
  const config = adapterConfigJson(form.lora, form.baseModel);
  await writeFileAtomic(join(folder, ADAPTER_CONFIG), `${JSON.stringify(config, null, 2)}\n`);
}

/**
 * Reads trained values in the order of `parameters`. An adapter of another scale is brought to that of `form`: what it
 * adds to its layers stays the same.
 * @throws {NotFoundError} a file is missing
 * @throws {FileFormatError} a tensor is missing, has another shape or belongs to no parameter
 */
export function readTrained(
  folder: string,
  form: TrainedForm,
  parameters: readonly Pick<Parameter, 'name' | 'shape'>[],
): Float32Array[] {
  const body = join(folder, form.kind === 'lora' ? ADAPTER_WEIGHTS : WHOLE_WEIGHTS);
  const head = join(folder, VALUE_HEAD);
  const values = new Map<string, Float32Array>();
  for (const [file, wanted] of [
    [body, parameters.filter(({ name }) => !isValueHead(name))],
    [head, parameters.filter(({ name }) => isValueHead(name))],
  ] as const)
    if (wanted.length > 0) readTensors(file, wanted, values);
  if (form.kind === 'lora') rescale(values, readScales(folder), form.lora);
  return parameters.map(({ name }) => values.get(name) as Float32Array);
}

function readScales(folder: string): AdapterConfig {
  const path = join(folder, ADAPTER_CONFIG);
  if (!existsSync(path)) throw new NotFoundError(`${path} does not exist`);
  try {
    return readAdapterConfig(JSON.parse(readFileSync(path, 'utf8')) as object, path);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new FileFormatError(`${path}: ${cause.message}`, { cause });
  }
}

/** scale B A = own (scale / own B) A: of the two factors, B takes the difference. */
function rescale(values: Map<string, Float32Array>, config: AdapterConfig, { rank, alpha }: LoraShape): void {
  for (const [name, tensor] of values) {
    const path = /(layers\..*)\.lora_B\.weight$/.exec(name)?.[1];
    if (path === undefined) continue;
    const factor = rankAndScale(config, path).scale / (alpha / rank);
    if (factor !== 1)
      values.set(
        name,
        tensor.map((value) => factor * value),
      );
  }
}

/** PEFT's name of a tensor that was stored under a shorter one. */
const fullName = (name: string): string =>
  name
    .replace(/^(?:base_model\.model\.)?(?:model\.)?(?=layers\..*\.lora_[AB]\.)/, 'base_model.model.model.')
    .replace(/\.default\.weight$/, '.weight');

function readTensors(
  file: string,
  wanted: readonly Pick<Parameter, 'name' | 'shape'>[],
  values: Map<string, Float32Array>,
): void {
  const source = openSafetensorsFile(file);
  try {
    const names = new Map([...source.tensors.keys()].map((name) => [fullName(name), name]));
    for (const { name, shape } of wanted) {
      const stored = source.tensors.get(names.get(name) ?? name)?.shape.join(',');
      if (stored !== shape.join(','))
        throw new FileFormatError(
          `${file}: tensor "${name}" is ${stored === undefined ? 'missing' : `[${stored}]`}, expected [${shape}]`,
        );
      values.set(name, source.readFloat32(names.get(name) ?? name));
      names.delete(name);
    }
    const [stranger] = names.values();
    if (stranger !== undefined)
      throw new FileFormatError(`${file}: tensor "${stranger}" belongs to nothing that is trained here`);
  } finally {
    source.close();
  }
}
