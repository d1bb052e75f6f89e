// Each request has an id: the client's own when it is sane, else a new one. It is on the answer and in each log line.

import { randomBytes } from 'node:crypto';
import type { RequestHandler, Response } from 'express';
import type { Logger } from '../../telemetry/index.js';

/** Asked for every few seconds by what watches us: their lines would hide the others. */
const PROBES = ['/healthz', '/readyz'];
const SANE = /^[\w.:-]{1,128}$/;

export function requestIdOf(header: string | string[] | undefined): string {
  return typeof header === 'string' && SANE.test(header) ? header : `req_${randomBytes(12).toString('hex')}`;
}

export function requestId(logger: Logger): RequestHandler {
  return (req, res, next) => {
    const id = requestIdOf(req.headers['x-request-id']);
    const startedAt = performance.now();
    const { path } = req;
    res.locals['logger'] = logger.child({ requestId: id });
    res.set('x-request-id', id);
    res.once('close', () => {
      const durationMs = Math.round(performance.now() - startedAt);
      const complete = res.writableFinished;
      const fields = { method: req.method, path, status: res.statusCode, durationMs, complete };
      loggerOf(res)[PROBES.includes(path) ? 'debug' : 'info'](fields, 'request');
    });
    next();
  };
}

export function loggerOf(res: Response): Logger {
  return res.locals['logger'] as Logger;
}
