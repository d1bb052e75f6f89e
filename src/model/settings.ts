// Typed reads from a model's settings (config.json or GGUF metadata). Every failure names the file's key.

import { InvalidInputError, UnsupportedError } from '../errors.js';

export interface Settings {
  /** An integer of at least 1. */
  count(key: string, fallback?: number): number;
  number(key: string, fallback?: number): number;
  text(key: string, fallback?: string): string;
  flag(key: string, fallback: boolean): boolean;
  /** One id, a list of them, or nothing. */
  tokenIds(key: string): readonly number[];
  /** An object, or null where it is absent or null. */
  section(key: string): Settings | null;
  /** The raw value; undefined where it is absent or null. */
  raw(key: string): unknown;
}

/** @param where names the source in messages, such as `config.json` */
export function settingsOf(values: ReadonlyMap<string, unknown>, where: string): Settings {
  const raw = (key: string): unknown => {
    const value = values.get(key) ?? undefined;
    return typeof value === 'bigint' ? Number(value) : value;
  };
  const fail = (key: string, expected: string): never => {
    throw new InvalidInputError(`${where}: "${key}" must be ${expected}, not ${show(raw(key))}`, key);
  };
  const read = <T>(key: string, expected: string, fits: (value: unknown) => value is T, fallback?: T): T => {
    const value = raw(key) ?? fallback;
    return fits(value) ? value : fail(key, expected);
  };
  const isId = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
  return {
    raw,
    count: (key, fallback) => {
      const fits = (value: unknown): value is number => isId(value) && value >= 1;
      return read(key, 'an integer of at least 1', fits, fallback);
    },
    number: (key, fallback) =>
      read(key, 'a number', (value): value is number => Number.isFinite(value), fallback),
    text: (key, fallback) =>
      read(key, 'a string', (value): value is string => typeof value === 'string', fallback),
    flag: (key, fallback) =>
      read(key, 'true or false', (value): value is boolean => typeof value === 'boolean', fallback),
    tokenIds: (key) => {
      const value = raw(key);
      if (value === undefined) return [];
      const list: unknown[] = Array.isArray(value) ? value : [value];
      return list.every(isId) ? list : fail(key, 'a token id or a list of them');
    },
    section: (key) => {
      const value = raw(key);
      if (value === undefined) return null;
      if (typeof value !== 'object' || Array.isArray(value)) return fail(key, 'an object');
      return settingsOf(new Map(Object.entries(value as object)), `${where} ${key}`);
    },
  };
}

/** @throws {UnsupportedError} `where` has `key` with a value that this version cannot compute */
export function refuse(where: string, key: string, value: unknown, supported: string): never {
  throw new UnsupportedError(`${where}: ${key} ${show(value)} is not supported; supported: ${supported}`);
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
