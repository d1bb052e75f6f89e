import * as errors from '../../../src/errors.js';
import { errorAnswer } from '../../../src/server/openai/error-body.js';
import { RequestError, type WireCode } from '../../../src/server/openai/request-error.js';

test.each<[WireCode, number, string, string | null]>([
  ['invalid_request', 400, 'invalid_request_error', null],
  ['invalid_json', 400, 'invalid_request_error', 'invalid_json'],
  ['context_length_exceeded', 400, 'invalid_request_error', 'context_length_exceeded'],
  ['unsupported_parameter', 400, 'invalid_request_error', 'unsupported_parameter'],
  ['invalid_api_key', 401, 'invalid_request_error', 'invalid_api_key'],
  ['origin_not_allowed', 403, 'permission', 'origin_not_allowed'],
  ['model_not_found', 404, 'invalid_request_error', 'model_not_found'],
  ['route_not_found', 404, 'invalid_request_error', 'not_found'],
  ['method_not_allowed', 405, 'invalid_request_error', 'method_not_allowed'],
  ['request_too_large', 413, 'invalid_request_error', 'request_too_large'],
  ['unsupported_media_type', 415, 'invalid_request_error', 'unsupported_media_type'],
  ['too_many_requests', 429, 'rate_limit', 'rate_limit_exceeded'],
  ['model_loading', 503, 'overloaded', 'model_loading'],
  ['shutting_down', 503, 'overloaded', 'shutting_down'],
])('%s is a %i', (code, status, type, wireCode) => {
  const answer = errorAnswer(new RequestError(code, 'what and where', 'field'));
  expect(answer.status).toBe(status);
  expect(answer.body.error).toMatchObject({ type, param: 'field', code: wireCode });
  expect(Object.keys(answer.body.error).sort()).toEqual(['code', 'message', 'param', 'type']);
});

test('every error of the house has an answer with all four keys', () => {
  const made = [
    new errors.ConfigError('x'),
    new errors.InvalidInputError('x', 'messages[0].role'),
    new errors.ContextLengthError('x'),
    new errors.NotFoundError('x'),
    new errors.FileFormatError('x'),
    new errors.IntegrityError('x'),
    new errors.ConflictError('x'),
    new errors.UnsupportedError('x'),
    new errors.GraphError('x'),
    new errors.RuntimeError('x'),
    new errors.OverloadedError('x', 10),
    new errors.UnavailableError('x'),
    new errors.RefusedError('x'),
    new errors.NonFiniteError('x'),
    new errors.RetrievalError('x'),
    new errors.DownloadError('x'),
    new errors.CancelledError('x'),
  ];
  const classes = Object.values(errors).filter((item) => item !== errors.SearchloopError);
  expect(new Set(made.map((error) => error.constructor))).toEqual(new Set(classes));
  const rows = Object.fromEntries(
    made.map((error) => {
      const { status, body } = errorAnswer(error);
      expect(Object.keys(body.error).sort()).toEqual(['code', 'message', 'param', 'type']);
      return [error.name, [status, body.error.code]];
    }),
  );
  expect(rows).toEqual({
    ConfigError: [500, 'internal_error'],
    InvalidInputError: [400, null],
    ContextLengthError: [400, 'context_length_exceeded'],
    NotFoundError: [404, 'model_not_found'],
    FileFormatError: [500, 'internal_error'],
    IntegrityError: [500, 'internal_error'],
    ConflictError: [500, 'internal_error'],
    UnsupportedError: [400, 'unsupported_parameter'],
    GraphError: [500, 'internal_error'],
    RuntimeError: [500, 'internal_error'],
    OverloadedError: [429, 'queue_full'],
    UnavailableError: [503, 'unavailable'],
    RefusedError: [500, 'internal_error'],
    NonFiniteError: [500, 'non_finite'],
    RetrievalError: [503, 'retrieval_failed'],
    DownloadError: [500, 'internal_error'],
    CancelledError: [503, 'cancelled'],
  });
});

test('an unknown failure says nothing of the inside', () => {
  for (const thrown of [new TypeError('/secret/path broke'), 'text', null, undefined, { status: 200 }]) {
    const { status, body } = errorAnswer(thrown);
    expect(status).toBe(500);
    expect(body.error.code).toBe('internal_error');
    expect(JSON.stringify(body)).not.toContain('secret');
  }
});

test('waits are told in seconds and milliseconds, never 0 and at most a minute', () => {
  const headers = (ms: number) => errorAnswer(new errors.OverloadedError('full', ms)).headers;
  expect(headers(1500)).toEqual({ 'retry-after': '2', 'retry-after-ms': '1500' });
  expect(headers(0.2)).toEqual({ 'retry-after': '1', 'retry-after-ms': '1' });
  expect(headers(1e9)).toEqual({ 'retry-after': '60', 'retry-after-ms': '60000' });
  expect(errorAnswer(new RequestError('model_loading', 'x')).headers).toHaveProperty('retry-after');
  expect(errorAnswer(new errors.InvalidInputError('x')).headers).toEqual({});
});

test('what a retry cannot help is not to be retried', () => {
  expect(errorAnswer(new errors.NonFiniteError('NaN')).headers).toEqual({ 'x-should-retry': 'false' });
});

test('an overflow carries the words that LangChain looks for', () => {
  const { body } = errorAnswer(new errors.ContextLengthError('900 tokens, the limit is 512'));
  expect(body.error).toMatchObject({ code: 'context_length_exceeded', param: 'messages' });
  expect(body.error.message).toMatch(/maximum context length.*900 tokens, the limit is 512/);
});

test('a message is cut, on a character border', () => {
  const { body } = errorAnswer(new errors.InvalidInputError(`${'a'.repeat(999)}${'🫠'.repeat(50_000)}`));
  expect(body.error.message.length).toBeLessThan(1100);
  expect(body.error.message).not.toMatch(/\p{Surrogate}/u);
});
