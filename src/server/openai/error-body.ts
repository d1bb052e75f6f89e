// The one place that knows HTTP status codes and OpenAI error types.

import { InvalidInputError, OverloadedError, SearchloopError } from '../../errors.js';
import { RequestError, type WireCode } from './request-error.js';

/** The OpenAI error envelope; all four keys are always there. */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ErrorBody;
}

interface Row {
  readonly status: number;
  readonly type: string;
  /** Code as clients see it. */
  readonly code: string | null;
  /** Time after which a retry makes sense. */
  readonly retryAfterMs?: number;
  /** A retry of a 5xx cannot help: clients are told so. */
  readonly final?: boolean;
  /** The cause may name files or internals: the client gets this text. */
  readonly message?: string;
}

const INVALID = 'invalid_request_error';
const SERVER = 'server_error';

const WIRE: Readonly<Record<WireCode, Row>> = {
  invalid_request: { status: 400, type: INVALID, code: null },
  invalid_json: { status: 400, type: INVALID, code: 'invalid_json' },
  context_length_exceeded: { status: 400, type: INVALID, code: 'context_length_exceeded' },
  unsupported_parameter: { status: 400, type: INVALID, code: 'unsupported_parameter' },
  invalid_api_key: { status: 401, type: INVALID, code: 'invalid_api_key' },
  insufficient_scope: { status: 403, type: 'permission', code: 'insufficient_scope' },
  origin_not_allowed: { status: 403, type: 'permission', code: 'origin_not_allowed' },
  model_not_found: { status: 404, type: INVALID, code: 'model_not_found' },
  answer_not_found: { status: 404, type: INVALID, code: 'answer_not_found' },
  version_not_found: { status: 404, type: INVALID, code: 'version_not_found' },
  route_not_found: { status: 404, type: INVALID, code: 'not_found' },
  method_not_allowed: { status: 405, type: INVALID, code: 'method_not_allowed' },
  upgrade_required: { status: 426, type: INVALID, code: 'upgrade_required' },
  request_too_large: { status: 413, type: INVALID, code: 'request_too_large' },
  unsupported_media_type: { status: 415, type: INVALID, code: 'unsupported_media_type' },
  request_header_too_large: { status: 431, type: INVALID, code: 'request_header_too_large' },
  too_many_requests: { status: 429, type: 'rate_limit', code: 'rate_limit_exceeded', retryAfterMs: 1000 },
  model_loading: { status: 503, type: 'overloaded', code: 'model_loading', retryAfterMs: 5000 },
  index_loading: { status: 503, type: 'overloaded', code: 'index_loading', retryAfterMs: 5000 },
  store_loading: { status: 503, type: 'overloaded', code: 'store_loading', retryAfterMs: 1000 },
  shutting_down: { status: 503, type: 'overloaded', code: 'shutting_down', retryAfterMs: 5000 },
};

const INTERNAL: Row = {
  status: 500,
  type: SERVER,
  code: 'internal_error',
  message: 'the server failed to answer; the log has the cause under this request id',
};

/** Codes of errors.ts. A code that is not here is internal. */
const HOUSE: Readonly<Record<string, Row>> = {
  invalid_input: WIRE.invalid_request,
  context_length_exceeded: WIRE.context_length_exceeded,
  unsupported: WIRE.unsupported_parameter,
  not_found: WIRE.model_not_found,
  overloaded: { status: 429, type: 'rate_limit', code: 'queue_full' },
  unavailable: { status: 503, type: 'overloaded', code: 'unavailable', retryAfterMs: 5000 },
  cancelled: { status: 503, type: 'overloaded', code: 'cancelled', retryAfterMs: 1000 },
  retrieval_failed: {
    status: 503,
    type: SERVER,
    code: 'retrieval_failed',
    retryAfterMs: 1000,
    message: 'the search engine failed; the log has the cause under this request id',
  },
  non_finite: { status: 500, type: SERVER, code: 'non_finite', final: true },
};

/** Clients wait at most this long on our word. */
const LONGEST_RETRY_MS = 60_000;
/** Keeps any answer far below 16 KiB. */
const LONGEST_MESSAGE = 1000;

/**
 * Status, headers and body for any thrown value. Unknown values are a 500 that says nothing of the inside.
 */
export function errorAnswer(error: unknown): ErrorAnswer {
  const row = rowOf(error);
  const text = row.message ?? (error instanceof Error ? error.message : String(error));
  return {
    status: row.status,
    headers: headersOf(row, error),
    body: {
      error: {
        message: shorten(withMarker(row, text)),
        type: row.type,
        param: paramOf(error),
        code: row.code,
      },
    },
  };
}

/** True when the fault is ours, so that the log needs the cause. */
export function isServerFault(answer: ErrorAnswer): boolean {
  return answer.status >= 500 && answer.body.error.type === SERVER;
}

function rowOf(error: unknown): Row {
  if (error instanceof RequestError) return WIRE[error.code];
  if (error instanceof SearchloopError) return HOUSE[error.code] ?? INTERNAL;
  return INTERNAL;
}

function paramOf(error: unknown): string | null {
  if (error instanceof RequestError || error instanceof InvalidInputError) return error.param;
  if (error instanceof SearchloopError && error.code === 'context_length_exceeded') return 'messages';
  return null;
}

function headersOf(row: Row, error: unknown): Record<string, string> {
  const retryAfterMs = error instanceof OverloadedError ? error.retryAfterMs : row.retryAfterMs;
  const headers: Record<string, string> = {};
  if (row.status >= 500 && row.final) headers['x-should-retry'] = 'false';
  if (retryAfterMs !== undefined) {
    const wait = Math.min(LONGEST_RETRY_MS, Math.max(1, Math.ceil(retryAfterMs)));
    headers['retry-after'] = String(Math.ceil(wait / 1000));
    headers['retry-after-ms'] = String(wait);
  }
  return headers;
}

/** LangChain recognises an overflow by these words. */
function withMarker(row: Row, text: string): string {
  return row.code === 'context_length_exceeded' && !text.includes('maximum context length')
    ? `This model's maximum context length is exceeded: ${text}`
    : text;
}

function shorten(text: string): string {
  if (text.length <= LONGEST_MESSAGE) return text;
  return `${text.slice(0, LONGEST_MESSAGE).replace(/[\uD800-\uDBFF]$/, '')}...`;
}
