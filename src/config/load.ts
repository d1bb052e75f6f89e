import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parse as parseYaml } from 'yaml';
import type { z } from 'zod';
import { ConfigError } from '../errors.js';
import { type Config, configSchema } from './schema.js';

const PREFIX = 'SEARCHLOOP_';

type Tree = { [key: string]: unknown };

export interface ConfigSources {
  /** YAML or JSON file; absent: `SEARCHLOOP_CONFIG`, else none. */
  readonly file?: string;
  /** `section.key` to value, from flags; they win. */
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/**
 * Parses file, then environment (`SEARCHLOOP_SECTION_KEY`, upper snake case), then flags into one frozen tree.
 * @throws {ConfigError} naming each wrong or unknown key, what was expected and what came
 */
export function loadConfig(sources: ConfigSources = {}): Config {
  const env = sources.env ?? process.env;
  const file = sources.file ?? env[`${PREFIX}CONFIG`];
  const tree: Tree = file === undefined ? {} : readTree(resolve(file));
  for (const [path, value] of environmentEntries(env)) assign(tree, path, value);
  for (const [path, value] of Object.entries(sources.flags ?? {}))
    if (value !== undefined) assign(tree, path.split('.'), value);
  const parsed = configSchema.safeParse(tree);
  if (!parsed.success)
    throw new ConfigError(`configuration is not valid:\n${parsed.error.issues.map(describe).join('\n')}`);
  return deepFreeze(parsed.data);
}

function readTree(file: string): Tree {
  let value: unknown;
  try {
    value = parseYaml(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new ConfigError(`cannot read configuration file ${file}: ${(cause as Error).message}`, { cause });
  }
  if (value === null || value === undefined) return {};
  if (typeof value !== 'object' || Array.isArray(value))
    throw new ConfigError(`configuration file ${file}: expected a mapping of sections at the top`);
  return value as Tree;
}

/** Known leaves by their environment name, so that a misspelt variable is an error and not ignored. */
function environmentEntries(env: Readonly<Record<string, string | undefined>>): [string[], unknown][] {
  const leaves = new Map<string, string[]>();
  for (const [section, keys] of Object.entries(configSchema.parse({})))
    for (const key of Object.keys(keys)) leaves.set(environmentName(section, key), [section, key]);
  const entries: [string[], unknown][] = [];
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith(PREFIX) || text === undefined || name === `${PREFIX}CONFIG`) continue;
    const path = leaves.get(name);
    if (!path)
      throw new ConfigError(
        `environment variable ${name} names no setting; expected ${PREFIX}<SECTION>_<KEY>`,
      );
    entries.push([path, parseScalar(text)]);
  }
  return entries;
}

/** `server`, `bodyLimitBytes` -> `SEARCHLOOP_SERVER_BODY_LIMIT_BYTES`. */
export function environmentName(section: string, key: string): string {
  return `${PREFIX}${section}_${key.replace(/[A-Z]/g, (letter) => `_${letter}`)}`.toUpperCase();
}

/** Environment text as YAML, so numbers, booleans, null, lists and mappings can be given. */
function parseScalar(text: string): unknown {
  try {
    return parseYaml(text);
  } catch {
    return text;
  }
}

function assign(tree: Tree, path: readonly string[], value: unknown): void {
  const [head, ...rest] = path as [string, ...string[]];
  if (rest.length === 0) {
    tree[head] = value;
    return;
  }
  const child = tree[head];
  const next: Tree =
    child !== null && typeof child === 'object' && !Array.isArray(child) ? (child as Tree) : {};
  tree[head] = next;
  assign(next, rest, value);
}

function describe(issue: z.core.$ZodIssue): string {
  const where = issue.path.length > 0 ? issue.path.join('.') : '(top)';
  if (issue.code === 'unrecognized_keys')
    return `  ${where}: unknown key ${issue.keys.map((key) => `"${key}"`).join(', ')}`;
  return `  ${where}: ${issue.message}`;
}

function deepFreeze<T>(value: T): T {
  if (value !== null && typeof value === 'object') {
    Object.values(value).forEach(deepFreeze);
    Object.freeze(value);
  }
  return value;
}
