// Faults of the input as plain values: they may have to cross from the worker.

import { RequestError, type WireCode } from '../openai/request-error.js';

export interface Fault {
  readonly code: WireCode;
  readonly message: string;
  readonly param: string | null;
}

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly fault: Fault };

/** A `RequestError` becomes a value; other errors are thrown. */
export function attempt<T>(parse: () => T): Parsed<T> {
  try {
    return { ok: true, value: parse() };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { ok: false, fault: { code: error.code, message: error.message, param: error.param } };
  }
}

/** @throws {RequestError} what the fault tells */
export function unwrap<T>(parsed: Parsed<T>): T {
  if (parsed.ok) return parsed.value;
  throw new RequestError(parsed.fault.code, parsed.fault.message, parsed.fault.param);
}
