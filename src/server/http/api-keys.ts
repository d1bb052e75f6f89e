// Bearer keys. Only their sha-256 digests stay in memory, and comparing takes the same time for every key.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { RequestError } from '../openai/request-error.js';

export interface KeyRing {
  /** @throws {RequestError} 401 when keys are asked for and this one is none of them */
  check(key: string | undefined): void;
}

export function createKeyRing(keys: readonly string[]): KeyRing {
  const digests = keys.map(digest);
  return {
    check(key) {
      if (digests.length === 0) return;
      if (key === undefined)
        throw new RequestError('invalid_api_key', 'expected a key in the header "Authorization: Bearer KEY"');
      const given = digest(key);
      const found = digests.map((own) => timingSafeEqual(own, given)).includes(true);
      if (!found) throw new RequestError('invalid_api_key', 'Incorrect API key provided');
    },
  };
}

export function bearerOf(header: string | undefined): string | undefined {
  return header?.match(/^Bearer +(\S+) *$/i)?.[1];
}

export function requireKey(ring: KeyRing): RequestHandler {
  return (req, res, next) => {
    try {
      ring.check(bearerOf(req.headers.authorization));
    } catch (error) {
      res.set('www-authenticate', 'Bearer');
      throw error;
    }
    next();
  };
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
