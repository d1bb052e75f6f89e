// Browser clients of other origins.

import type { IncomingHttpHeaders } from 'node:http';
import type { RequestHandler } from 'express';
import { RequestError } from '../openai/request-error.js';
import { isListed, isSameHost } from './page.js';

const EXPOSED = 'x-request-id, x-searchloop-version, retry-after, retry-after-ms, openai-processing-ms';
const METHODS = 'GET, POST, OPTIONS';
const DEFAULT_HEADERS = 'authorization, content-type';
const PREFLIGHT_SECONDS = '600';

/** Requests without an origin come from no page; those from our own address are not foreign. */
export function isOriginAllowed(headers: IncomingHttpHeaders, allowed: readonly string[]): boolean {
  const { origin } = headers;
  if (origin === undefined || allowed.includes('*') || allowed.includes(origin)) return true;
  return isListed(origin, allowed) || isSameHost(headers);
}

/** A browser request from an origin that is not allowed is refused, not only hidden from its page. */
export function cors(origins: readonly string[]): RequestHandler {
  const all = origins.includes('*');
  return (req, res, next) => {
    const origin = req.get('origin');
    if (origin === undefined) return next();
    if (!isOriginAllowed(req.headers, origins))
      throw new RequestError('origin_not_allowed', 'requests from this origin are not allowed');
    res.set('access-control-allow-origin', all ? '*' : origin);
    if (!all) res.vary('origin');
    res.set('access-control-expose-headers', EXPOSED);
    if (req.method !== 'OPTIONS') return next();
    res.set('access-control-allow-methods', METHODS);
    res.set('access-control-allow-headers', req.get('access-control-request-headers') ?? DEFAULT_HEADERS);
    res.set('access-control-max-age', PREFLIGHT_SECONDS);
    res.status(204).end();
  };
}
