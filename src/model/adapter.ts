// A LoRA adapter of a decoder, read from a PEFT folder.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { FileFormatError, InvalidInputError, NotFoundError, UnsupportedError } from '../errors.js';
import { jsonObject, readJsonFileSync } from '../util/json-file.js';
import { openSafetensorsFile, type TensorSource } from '../weights/index.js';
import { type AdapterConfig, endsWith, rankAndScale, readAdapterConfig } from './adapter-config.js';
import { ADAPTER_GROUPS, GROUP_MODULES } from './adapter-groups.js';
import type { DecoderConfig } from './decoder-config.js';
import { type LinearModule, linearShape } from './decoder-weights.js';

const CONFIG_NAME = 'adapter_config.json';
const WEIGHTS_NAME = 'adapter_model.safetensors';

/**
 * Largest absolute value of A and of scale * B that is served. In a mixed batch every row is multiplied with every adapter
 * before the mask takes away what is not its own; a product that overflowed would turn the mask's 0 into NaN, for other rows too.
 */
export const LARGEST_ADAPTER_WEIGHT = 1e6;

/** y += scale * B (A x) for one linear layer. */
export interface AdapterModule {
  readonly layer: number;
  readonly module: LinearModule;
  readonly rank: number;
  readonly scale: number;
  /** f32 [rank, in] */
  readonly a: Float32Array;
  /** f32 [out, rank] */
  readonly b: Float32Array;
}

export interface Adapter {
  /** sha256 over ranks, scales and weights: equal content gives equal digests, whatever its dtype or folder. */
  readonly digest: string;
  /** Largest rank of a module. */
  readonly rank: number;
  readonly modules: readonly AdapterModule[];
}

export interface ReadAdapterOptions {
  /** Largest rank that is accepted. */
  readonly maxRank?: number;
}

const MODULES = ADAPTER_GROUPS.flatMap((group) => GROUP_MODULES[group]);

const TENSOR =
  /^(?:base_model\.model\.)?(?:model\.)?layers\.(\d+)\.(?:self_attn|mlp)\.(q|k|v|o|gate|up|down)_proj\.lora_([AB])(?:\.default)?\.weight$/;

/** Path of a module as PEFT names it, from `layers` on. */
export function modulePath(layer: number, module: LinearModule): string {
  const block = GROUP_MODULES.qkv.includes(module) || module === 'o' ? 'self_attn' : 'mlp';
  return `layers.${layer}.${block}.${module}_proj`;
}

/**
 * Reads an adapter saved by PEFT: `adapter_config.json` and `adapter_model.safetensors` (F32, F16 or BF16).
 * @throws {NotFoundError} a file is missing
 * @throws {UnsupportedError} an option, a module or a tensor that this version does not compute
 * @throws {InvalidInputError} a rank above the limit
 * @throws {FileFormatError} a tensor is missing, has another shape than the settings say, or holds a number that is not finite
 */
export function readAdapter(
  folder: string,
  decoder: DecoderConfig,
  { maxRank = Number.POSITIVE_INFINITY }: ReadAdapterOptions = {},
): Adapter {
  const configPath = join(folder, CONFIG_NAME);
  if (!existsSync(configPath)) throw new NotFoundError(`${configPath} does not exist`);
  const config = readAdapterConfig(readJsonFileSync(configPath, jsonObject), configPath);
  checkTargets(config, decoder, configPath);
  const weightsPath = join(folder, WEIGHTS_NAME);
  if (!existsSync(weightsPath)) throw new NotFoundError(`${weightsPath} does not exist`);
  const source = openSafetensorsFile(weightsPath);
  try {
    const names = tensorNames(source, decoder, weightsPath);
    const modules = expectedModules(config, decoder, names).map(([layer, module]) =>
      readModule({ config, decoder, source, names, maxRank, weightsPath }, layer, module),
    );
    return {
      digest: digestOf(modules),
      rank: Math.max(...modules.map(({ rank }) => rank)),
      modules,
    };
  } finally {
    source.close();
  }
}

function checkTargets(config: AdapterConfig, decoder: DecoderConfig, where: string): void {
  const paths = Array.from({ length: decoder.layers }, (_, layer) => layer).flatMap((layer) =>
    MODULES.map((module) => modulePath(layer, module)),
  );
  const stranger = config.targetNames?.find((name) => !paths.some((path) => endsWith(path, name)));
  if (stranger !== undefined)
    throw new UnsupportedError(
      `${where}: target module "${stranger}" is not one that adapters can change in this model; supported: ${MODULES.map((module) => `${module}_proj`).join(', ')}`,
    );
}

type Names = ReadonlyMap<string, { readonly A?: string; readonly B?: string }>;

const keyOf = (layer: number, module: string): string => `${layer}.${module}`;

/** Names of the tensors by layer and module. */
function tensorNames(source: TensorSource, decoder: DecoderConfig, where: string): Names {
  const names = new Map<string, { A?: string; B?: string }>();
  for (const name of source.tensors.keys()) {
    const match = TENSOR.exec(name);
    if (match === null)
      throw new UnsupportedError(
        `${where}: tensor "${name}" is no part of an adapter that this version knows`,
      );
    const [layer, module, side] = [Number(match[1]), match[2] as string, match[3] as 'A' | 'B'];
    if (layer >= decoder.layers)
      throw new FileFormatError(`${where}: tensor "${name}": the model has ${decoder.layers} layers`);
    const key = keyOf(layer, module);
    names.set(key, { ...names.get(key), [side]: name });
  }
  return names;
}

/** Modules that the settings target or the file has tensors for; one without the other is found when it is read. */
function expectedModules(
  config: AdapterConfig,
  decoder: DecoderConfig,
  names: Names,
): readonly (readonly [number, LinearModule])[] {
  const found: (readonly [number, LinearModule])[] = [];
  for (let layer = 0; layer < decoder.layers; layer++)
    for (const module of MODULES)
      if (config.targets(layer, modulePath(layer, module)) || names.has(keyOf(layer, module)))
        found.push([layer, module]);
  if (found.length === 0) throw new InvalidInputError('the adapter changes no module of this model');
  return found;
}

interface ReadContext {
  readonly config: AdapterConfig;
  readonly decoder: DecoderConfig;
  readonly source: TensorSource;
  readonly names: Names;
  readonly maxRank: number;
  readonly weightsPath: string;
}

function readModule(context: ReadContext, layer: number, module: LinearModule): AdapterModule {
  const { config, decoder, names, maxRank, weightsPath } = context;
  const path = modulePath(layer, module);
  const { rank, scale } = rankAndScale(config, path);
  if (rank > maxRank)
    throw new InvalidInputError(`adapter rank ${rank} of ${path} is above the limit of ${maxRank}`, 'r');
  const [out, inner] = linearShape(decoder, module);
  const found = names.get(keyOf(layer, module));
  const read = (side: 'A' | 'B', shape: readonly number[]): Float32Array => {
    const name = found?.[side];
    if (name === undefined) throw new FileFormatError(`${weightsPath}: ${path} has no lora_${side}`);
    return readTensor(context, name, shape);
  };
  return { layer, module, rank, scale, a: read('A', [rank, inner]), b: read('B', [out, rank]) };
}

function readTensor(
  { source, weightsPath }: ReadContext,
  name: string,
  shape: readonly number[],
): Float32Array {
  const stored = source.tensors.get(name)?.shape.join(',');
  if (stored !== shape.join(','))
    throw new FileFormatError(`${weightsPath}: tensor "${name}" is [${stored}], expected [${shape}]`);
  const values = source.readFloat32(name);
  const bad = values.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0)
    throw new FileFormatError(`${weightsPath}: tensor "${name}" holds ${values[bad]} at element ${bad}`);
  return values;
}

function digestOf(modules: readonly AdapterModule[]): string {
  const hash = createHash('sha256');
  for (const { layer, module, rank, scale, a, b } of modules) {
    hash.update(`${layer}.${module} ${rank} ${scale}\n`);
    for (const values of [a, b])
      hash.update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  }
  return hash.digest('hex');
}
