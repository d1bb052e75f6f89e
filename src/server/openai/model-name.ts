// `model` picks policy and method: searchloop[@adapter][:method].

import type { AdapterInfo, Generator } from '../../engine/index.js';
import { adapterFor, type MethodName } from '../../rollout/index.js';
import { RequestError } from './request-error.js';

export const MODEL = 'searchloop';
/** Methods that a suffix names; none means search-r1. */
export const METHODS: readonly MethodName[] = ['rag', 'cot', 'direct', 'chat'];
const BASE = 'base';
/** Shortest part of a version digest that names it. */
const SHORTEST_VERSION = 8;

export interface ModelTarget {
  readonly method: MethodName;
  /** What the engine is asked for: undefined is the live alias, null the base model. */
  readonly adapter: string | null | undefined;
  /** Digest that answers now, `base` for none. */
  readonly adapterVersion: string;
}

type Engine = Pick<Generator, 'listAdapters' | 'liveAdapter'>;

/**
 * @param liveMethods `model.liveMethods`
 * @throws {RequestError} 404 `model_not_found`
 */
export function resolveModel(name: string, engine: Engine, liveMethods: readonly MethodName[]): ModelTarget {
  const target = tryResolve(name, engine, liveMethods);
  if (target) return target;
  throw new RequestError(
    'model_not_found',
    `The model ${JSON.stringify(name.slice(0, 128))} does not exist; GET /v1/models lists those that do`,
    'model',
  );
}

export function tryResolve(
  name: string,
  engine: Engine,
  liveMethods: readonly MethodName[],
): ModelTarget | null {
  if (!name.startsWith(MODEL)) return null;
  const rest = name.slice(MODEL.length);
  const offered = offeredAdapters(engine);
  // An adapter's own name may end like a method.
  const isName = offered.some((item) => rest === `@${item.name}`);
  const method = isName
    ? undefined
    : [...METHODS, 'search-r1' as const].find((item) => rest.endsWith(`:${item}`));
  const selector = method === undefined ? rest : rest.slice(0, -method.length - 1);
  const chosen = method ?? 'search-r1';
  if (selector === '') {
    const adapter = adapterFor(chosen, liveMethods);
    const live = adapter === null ? null : engine.liveAdapter;
    return { method: chosen, adapter, adapterVersion: live?.version ?? BASE };
  }
  if (!selector.startsWith('@')) return null;
  const wanted = selector.slice(1);
  if (wanted === BASE) return { method: chosen, adapter: null, adapterVersion: BASE };
  const adapter = findAdapter(wanted, offered);
  if (!adapter) return null;
  return {
    method: chosen,
    adapter: adapter.name === wanted ? adapter.name : adapter.version,
    adapterVersion: adapter.version,
  };
}

/** Those that users may ask for: not what the loop has not published. */
export const offeredAdapters = (engine: Pick<Generator, 'listAdapters'>): AdapterInfo[] =>
  engine.listAdapters().filter(({ isInternal }) => !isInternal);

/** By name, by version, or by the beginning of exactly one version. */
function findAdapter(wanted: string, adapters: readonly AdapterInfo[]): AdapterInfo | null {
  const exact =
    adapters.find((item) => item.name === wanted) ?? adapters.find((item) => item.version === wanted);
  if (exact) return exact;
  if (wanted.length < SHORTEST_VERSION) return null;
  const matches = adapters.filter((item) => item.version.startsWith(wanted));
  const versions = new Set(matches.map((item) => item.version));
  return versions.size === 1 ? matches[0]! : null;
}
