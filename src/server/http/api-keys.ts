// Bearer keys: those of the settings, which may ask, and those of the store, each with its scopes. Only sha-256
// digests stay in memory, and comparing takes the same time for every key.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler, Response } from 'express';
import type { KeyRecord, Scope } from '../../trajectory/index.js';
import { RequestError } from '../openai/request-error.js';
import { isForeignPage, type OwnNames } from './page.js';

/** Whose request it is. */
export interface Identity {
  /** Names the key in records and feedback; `anonymous` where no key is asked for. */
  readonly keyId: string;
  readonly scopes: readonly Scope[];
  /** Told where a scope is missing; absent for keys, which have what they were given. */
  readonly whyNoMore?: string;
}

export interface KeySource {
  keys(): Promise<readonly KeyRecord[]>;
}

export interface KeyRing {
  /**
   * @param isForeign  a web page of another origin asks, or may: without keys it may do less
   * @throws {RequestError} 401 when keys are asked for and this one is none of them; 503 while those of the store
   *   are not known yet
   */
  check(key: string | undefined, isForeign: boolean): Identity;
  /** Reads the keys of the store, now and every few seconds: a key that was revoked elsewhere ends here too. */
  start(): void;
  stop(): void;
}

const REFRESH_MS = 2000;
/** Without any key the server is open, and its user may do all. */
const ANONYMOUS: Identity = { keyId: 'anonymous', scopes: ['admin'] };
/** But not whatever page that user has open: it reaches the server through their browser. */
const FOREIGN_PAGE: Identity = {
  keyId: ANONYMOUS.keyId,
  scopes: ['ask'],
  whyNoMore:
    'a web page of another origin may only ask while there are no API keys, and so may who reaches this server by a name that is not known to be its own; make a key ("searchloop keys create NAME --scope feedback", or admin) and send it, or name the origin (http://NAME:PORT) in server.corsOrigins',
};

interface KnownKey extends Identity {
  readonly digest: Buffer;
}

export function createKeyRing(
  keys: readonly string[],
  source: KeySource | null = null,
  onTrouble: (error: Error) => void = () => {},
): KeyRing {
  const own = keys.map((key): KnownKey => {
    const value = digest(key);
    return { digest: value, keyId: `config-${value.toString('hex').slice(0, 8)}`, scopes: ['ask'] };
  });
  /** null until the store was read once: a server that has keys must not be open before it knows them. */
  let stored: readonly KnownKey[] | null = source === null ? [] : null;
  /** Also when all were revoked: who takes the last key away does not mean to let everybody in. */
  let hasEverHadKeys = keys.length > 0;
  let isReading = false;
  let timer: NodeJS.Timeout | undefined;

  async function refresh(from: KeySource): Promise<void> {
    if (isReading) return;
    isReading = true;
    try {
      const records = await from.keys();
      hasEverHadKeys ||= records.length > 0;
      stored = records.filter(({ revokedAt }) => revokedAt === null).map(knownKey);
    } catch (error) {
      onTrouble(error as Error);
    } finally {
      isReading = false;
    }
  }

  return {
    check(key, isForeign) {
      const known = [...own, ...(stored ?? [])];
      if (!hasEverHadKeys && stored !== null) return isForeign ? FOREIGN_PAGE : ANONYMOUS;
      const found = key === undefined ? null : matching(known, digest(key));
      if (found !== null) return { keyId: found.keyId, scopes: found.scopes };
      if (stored === null) throw new RequestError('store_loading', 'the keys are being read');
      if (key === undefined)
        throw new RequestError('invalid_api_key', 'expected a key in the header "Authorization: Bearer KEY"');
      throw new RequestError('invalid_api_key', 'Incorrect API key provided');
    },
    start() {
      if (source === null) return;
      void refresh(source);
      timer = setInterval(() => void refresh(source), REFRESH_MS);
      timer.unref();
    },
    stop: () => clearInterval(timer),
  };
}

export function bearerOf(header: string | undefined): string | undefined {
  return header?.match(/^Bearer +(\S+) *$/i)?.[1];
}

export function requireKey(ring: KeyRing, own: OwnNames): RequestHandler {
  return ({ headers }, res, next) => {
    try {
      res.locals['identity'] = ring.check(bearerOf(headers.authorization), isForeignPage(headers, own));
    } catch (error) {
      res.set('www-authenticate', 'Bearer');
      throw error;
    }
    next();
  };
}

/** Behind `requireKey`. */
export function requireScope(scope: Scope): RequestHandler {
  return (_req, res, next) => {
    assertScope(identityOf(res), scope);
    next();
  };
}

export function identityOf(res: Response): Identity {
  return res.locals['identity'] as Identity;
}

export const hasScope = ({ scopes }: Identity, scope: Scope): boolean =>
  scopes.includes(scope) || scopes.includes('admin');

/** @throws {RequestError} 403 */
export function assertScope(identity: Identity, scope: Scope, param: string | null = null): void {
  if (hasScope(identity, scope)) return;
  const why = identity.whyNoMore ?? `this key has no scope "${scope}"`;
  throw new RequestError('insufficient_scope', why, param);
}

function matching(known: readonly KnownKey[], given: Buffer): KnownKey | null {
  let found: KnownKey | null = null;
  // Every key is compared, also after a match.
  for (const key of known) if (timingSafeEqual(key.digest, given)) found = key;
  return found;
}

function knownKey({ id, digest: hex, scopes }: KeyRecord): KnownKey {
  return { digest: Buffer.from(hex, 'hex'), keyId: id, scopes };
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
