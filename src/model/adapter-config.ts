// What a PEFT adapter_config.json asks for, and the refusal of what this version cannot compute.

import { InvalidInputError, UnsupportedError } from '../errors.js';
import { type Settings, settingsOf } from './settings.js';

export interface AdapterConfig {
  readonly rank: number;
  readonly alpha: number;
  /** Scale alpha / sqrt(rank) instead of alpha / rank. */
  readonly rankStabilised: boolean;
  readonly rankPattern: readonly Pattern[];
  readonly alphaPattern: readonly Pattern[];
  /** Whether the adapter says that it changes this layer and module path (`layers.0.self_attn.q_proj`). */
  targets(layer: number, path: string): boolean;
  /** Targets named one by one, so that unknown names can be found; null where a pattern picks them. */
  readonly targetNames: readonly string[] | null;
}

interface Pattern {
  readonly expression: RegExp;
  readonly value: number;
}

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === false ||
  (typeof value === 'object' && value !== null && Object.keys(value).length === 0);

/** Options that change what an adapter computes, with what is accepted. Keys that are not here are ignored. */
const ACCEPTED: Readonly<
  Record<string, { readonly fits: (value: unknown) => boolean; readonly only: string }>
> = {
  peft_type: { fits: (value) => value === 'LORA', only: 'LORA' },
  bias: { fits: (value) => value === undefined || value === 'none', only: '"none"' },
  init_lora_weights: {
    // The others alter the base weights as well.
    fits: (value) =>
      isEmpty(value) || [true, 'gaussian', 'eva', 'orthogonal', 'lora_ga'].includes(value as string),
    only: 'true, false, "gaussian", "eva", "orthogonal"',
  },
  ...Object.fromEntries(
    [
      'use_dora',
      'use_qalora',
      'use_bdlora',
      'lora_bias',
      'fan_in_fan_out',
      'modules_to_save',
      'layer_replication',
      'trainable_token_indices',
      'target_parameters',
      'alora_invocation_tokens',
      'arrow_config',
      'kasa_config',
      'monteclora_config',
      'velora_config',
    ].map((key) => [key, { fits: isEmpty, only: 'false or nothing' }]),
  ),
};

/**
 * Reads adapter_config.json.
 * @param json  the parsed file
 * @throws {UnsupportedError} an option changes the computation in a way this version does not know
 * @throws {InvalidInputError} a value of the wrong kind
 */
export function readAdapterConfig(json: object, where: string): AdapterConfig {
  const settings = settingsOf(new Map(Object.entries(json)), where);
  for (const [key, { fits, only }] of Object.entries(ACCEPTED))
    if (!fits(settings.raw(key)))
      throw new UnsupportedError(
        `${where}: ${key} ${JSON.stringify(settings.raw(key)) ?? 'missing'} is not supported, only ${only}`,
      );
  const names = settings.raw('target_modules');
  const targetNames = Array.isArray(names) ? names.map(String) : null;
  return {
    rank: settings.count('r'),
    alpha: settings.number('lora_alpha'),
    rankStabilised: settings.flag('use_rslora', false),
    rankPattern: patterns(settings, 'rank_pattern', where),
    alphaPattern: patterns(settings, 'alpha_pattern', where),
    targets: targetRule(settings, targetNames, where),
    targetNames,
  };
}

/** PEFT's rule: a target is a whole path or its end; a single string is a regular expression over whole paths. */
function targetRule(settings: Settings, names: readonly string[] | null, where: string) {
  const layers = settings.raw('layers_to_transform');
  const onlyLayers = layers === undefined ? null : [layers].flat();
  const excluded = settings.raw('exclude_modules');
  const matcher = (value: unknown, key: string): ((path: string) => boolean) => {
    if (Array.isArray(value)) return (path) => value.some((name) => endsWith(path, String(name)));
    const expression = expressionOf(String(value), where, key);
    return (path) => expression.test(`model.${path}`);
  };
  const target = settings.raw('target_modules');
  if (target === undefined)
    throw new InvalidInputError(`${where}: target_modules is missing`, 'target_modules');
  const isTarget = target === 'all-linear' ? () => true : matcher(names ?? target, 'target_modules');
  const isExcluded = excluded === undefined ? () => false : matcher(excluded, 'exclude_modules');
  return (layer: number, path: string): boolean =>
    isTarget(path) && !isExcluded(path) && (onlyLayers === null || onlyLayers.includes(layer));
}

/** Whether `name` is the path or ends it at a dot. */
export function endsWith(path: string, name: string): boolean {
  return `.model.${path}`.endsWith(`.${name}`);
}

function patterns(settings: Settings, key: string, where: string): readonly Pattern[] {
  const section = settings.raw(key);
  if (section === undefined) return [];
  if (typeof section !== 'object' || Array.isArray(section))
    throw new InvalidInputError(`${where}: "${key}" must be an object`, key);
  return Object.entries(section as object).map(([expression, value]) => {
    if (!Number.isFinite(value))
      throw new InvalidInputError(`${where}: "${key}" of "${expression}" must be a number`, key);
    return { expression: expressionOf(`(?:.*\\.)?(?:${expression})`, where, key), value };
  });
}

function expressionOf(source: string, where: string, key: string): RegExp {
  try {
    return new RegExp(`^(?:${source})$`);
  } catch (cause) {
    throw new InvalidInputError(`${where}: "${key}" holds no regular expression: ${source}`, key, { cause });
  }
}

/** Rank and scale of one module. */
export function rankAndScale(config: AdapterConfig, path: string): { rank: number; scale: number } {
  const pick = (list: readonly Pattern[], fallback: number): number =>
    list.find(({ expression }) => expression.test(`model.${path}`))?.value ?? fallback;
  const rank = pick(config.rankPattern, config.rank);
  const alpha = pick(config.alphaPattern, config.alpha);
  return { rank, scale: alpha / (config.rankStabilised ? Math.sqrt(rank) : rank) };
}
