// Errors across threads. Structured clone keeps neither class nor code, so they travel as plain values.

import { types } from 'node:util';
import * as errors from '../../errors.js';

/** Causes deeper than this are dropped. */
const MAX_CAUSES = 5;

export interface EncodedError {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  /** Further own fields that are plain values: code, details, param, retryAfterMs, errno, ... */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly cause: EncodedError | undefined;
}

/** Our classes by name, which is also their instances' `name`. */
const OURS = new Map<string, object>(
  Object.values(errors).map((error) => [error.name, error.prototype as object]),
);
const STANDARD = new Map<string, object>(
  [TypeError, RangeError, SyntaxError, ReferenceError].map((error) => [
    error.name,
    error.prototype as object,
  ]),
);

const isError = (value: unknown): value is Error => value instanceof Error || types.isNativeError(value);

const isScalar = (value: unknown): boolean =>
  value === null || ['string', 'number', 'boolean', 'bigint'].includes(typeof value);

const isPlain = (value: unknown): boolean =>
  isScalar(value) || (typeof value === 'object' && Object.values(value as object).every(isScalar));

/** Plain form of anything that was thrown. */
export function encodeError(error: unknown, depth = 0): EncodedError {
  if (!isError(error))
    return { name: 'Error', message: String(error), stack: undefined, fields: {}, cause: undefined };
  const fields: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(error))
    if (!['message', 'stack', 'cause'].includes(key) && isPlain(value)) fields[key] = value;
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    fields,
    cause: error.cause !== undefined && depth < MAX_CAUSES ? encodeError(error.cause, depth + 1) : undefined,
  };
}

/** The error again, of its own class where that is one of ours or of the language, else an `Error` with its name. */
export function decodeError(encoded: EncodedError): Error {
  const error = new Error(
    encoded.message,
    encoded.cause === undefined ? undefined : { cause: decodeError(encoded.cause) },
  );
  const prototype = OURS.get(encoded.name) ?? STANDARD.get(encoded.name);
  if (prototype) Object.setPrototypeOf(error, prototype);
  Object.assign(error, encoded.fields);
  if (error.name !== encoded.name)
    Object.defineProperty(error, 'name', { value: encoded.name, configurable: true, writable: true });
  if (encoded.stack !== undefined)
    Object.defineProperty(error, 'stack', { value: encoded.stack, configurable: true, writable: true });
  return error;
}
