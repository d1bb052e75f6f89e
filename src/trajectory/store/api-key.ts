// Makes API keys. The key is shown once; what is kept is its digest, which is as good as a password hash here
// because the key is 256 random bits.

import { randomBytes } from 'node:crypto';
import { sha256Hex } from '../../util/digest.js';
import type { KeyInput, Scope } from './types.js';

export interface NewKey {
  /** What the client sends. */
  readonly key: string;
  readonly stored: KeyInput;
}

export function createApiKey(name: string, scopes: readonly Scope[]): NewKey {
  const id = `key-${randomBytes(4).toString('hex')}`;
  const key = `sl-${randomBytes(32).toString('base64url')}`;
  return { key, stored: { id, name, digest: sha256Hex(key), scopes: [...new Set(scopes)] } };
}
