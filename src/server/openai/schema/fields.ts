// From zod's issues to one short error that names the field as the API's users know it.

import type { z } from 'zod';
import { invalidField, type RequestError, unsupportedField } from '../request-error.js';

/** Null counts as absent, as the API's own optional fields do. */
export function optional<S extends z.ZodType>(schema: S) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/**
 * Parses one level of a body.
 * @param at path of `value` in the body, '' for the body itself
 * @throws {RequestError} for the first fault only: its field, what was expected, what came (cut short)
 */
export function parseFields<S extends z.ZodType>(schema: S, value: unknown, at = ''): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw faultOf(result.error.issues[0]!, value, at);
}

function faultOf(issue: z.core.$ZodIssue, value: unknown, at: string): RequestError {
  const keys = issue.path as (string | number)[];
  const param = pathText(at, keys);
  if (issue.code === 'unrecognized_keys') {
    const key = pathText(param, [issue.keys[0]!]);
    return unsupportedField(key, `${key}: unknown key`);
  }
  const where = param === '' ? 'the body' : param;
  const given = valueAt(value, keys);
  if (issue.code === 'invalid_type')
    return invalidField(param === '' ? null : param, `${where}: ${typeFault(issue.expected, given)}`);
  const received = issue.message.includes('received') ? '' : `, received ${show(given)}`;
  return invalidField(param === '' ? null : param, `${where}: ${lowerFirst(issue.message)}${received}`);
}

const typeFault = (expected: string, given: unknown): string =>
  given === undefined ? `missing, expected ${expected}` : `expected ${expected}, received ${show(given)}`;

/** `messages`, [0, 'role'] -> `messages[0].role`. */
export function pathText(at: string, keys: readonly (string | number)[]): string {
  return keys.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return text === '' ? cut(key) : `${text}.${cut(key)}`;
  }, at);
}

/** A value in a message: its JSON cut short, or its kind. */
export function show(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'string') return JSON.stringify(cut(value));
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return value !== null && typeof value === 'object' ? 'an object' : String(value);
}

function valueAt(value: unknown, keys: readonly (string | number)[]): unknown {
  return keys.reduce<unknown>(
    (inner, key) => (inner as Record<string | number, unknown> | null)?.[key],
    value,
  );
}

function cut(text: string): string {
  return text.length <= 64 ? text : `${text.slice(0, 64).replace(/[\uD800-\uDBFF]$/, '')}...`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
