// The last word of every request that failed: always the JSON envelope, never a page.

import type { ErrorRequestHandler, RequestHandler, Response } from 'express';
import { SearchloopError } from '../../errors.js';
import type { Logger } from '../../telemetry/index.js';
import { type ErrorAnswer, errorAnswer, isServerFault } from '../openai/error-body.js';
import { RequestError } from '../openai/request-error.js';
import { hangUp } from './client-gone.js';
import { letGo } from './let-go.js';
import { loggerOf } from './request-id.js';

export function notFound(): RequestHandler {
  return (req) => {
    throw new RequestError('route_not_found', `there is no route ${req.method} ${cutPath(req.path)}`);
  };
}

export function methodNotAllowed(...methods: readonly string[]): RequestHandler {
  return (req, res) => {
    res.set('allow', methods.join(', '));
    throw new RequestError(
      'method_not_allowed',
      `expected ${methods.join(' or ')} here, received ${req.method}`,
    );
  };
}

export function errorHandler(): ErrorRequestHandler {
  // Express tells error handlers by their four parameters.
  return async (thrown: unknown, req, res, _next) => {
    // Nobody is left to answer; the request's own log line says that it is not complete.
    if (res.destroyed || res.closed) return;
    const error = known(thrown);
    const answer = errorAnswer(error);
    noteError(loggerOf(res), answer, error);
    if (res.headersSent) return hangUp(res);
    await letGo(req);
    sendError(res, answer);
  };
}

function sendError(res: Response, answer: ErrorAnswer): void {
  if (res.destroyed) return;
  res.status(answer.status).set(answer.headers).json(answer.body);
}

/** Faults of ours with their cause; a client's fault without its text, which may quote a question. */
export function noteError(logger: Logger, answer: ErrorAnswer, error: unknown): void {
  const { code, type, param } = answer.body.error;
  if (isServerFault(answer)) logger.error({ err: error, status: answer.status, code }, 'request failed');
  else logger.info({ status: answer.status, code, type, param }, 'request refused');
}

/** The router throws errors of its own making, for paths that cannot be decoded. */
function known(thrown: unknown): unknown {
  if (thrown instanceof SearchloopError) return thrown;
  const { status } = (thrown ?? {}) as { status?: unknown };
  if (typeof status === 'number' && status >= 400 && status < 500)
    return new RequestError('invalid_request', 'the request could not be read', null, thrown);
  return thrown;
}

function cutPath(path: string): string {
  return path.length <= 128 ? path : `${path.slice(0, 128)}...`;
}
