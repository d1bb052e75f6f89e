import { createHash } from 'node:crypto';
import { assertScope, createKeyRing, hasScope } from '../../../src/server/http/api-keys.js';
import { createApiKey, type KeyRecord, type Scope } from '../../../src/trajectory/index.js';
import { eventually } from '../../support/eventually.js';

function stored(name: string, ...scopes: Scope[]): { key: string; record: KeyRecord } {
  const { key, stored: input } = createApiKey(name, scopes);
  return { key, record: { ...input, createdAt: 0, revokedAt: null } };
}

const unknown = expect.objectContaining({ code: 'invalid_api_key' });

test('a key is random, kept as its digest only, and checked with its scopes', async () => {
  const { key, record } = stored('phone', 'ask', 'feedback');
  expect(key).toMatch(/^sl-[\w-]{43}$/);
  expect(record.digest).toBe(createHash('sha256').update(key).digest('hex'));
  expect(JSON.stringify(record)).not.toContain(key);
  const ring = createKeyRing(['from-config'], { keys: async () => [record] });
  ring.start();
  await eventually(() => {
    try {
      return ring.check(key, false).keyId === record.id;
    } catch {
      return false;
    }
  });
  ring.stop();
  expect(ring.check(key, false)).toEqual({ keyId: record.id, scopes: ['ask', 'feedback'] });
  expect(ring.check('from-config', false)).toEqual({
    keyId: expect.stringMatching(/^config-/),
    scopes: ['ask'],
  });
  expect(() => ring.check(undefined, false)).toThrow(unknown);
  expect(() => ring.check(`${key}x`, false)).toThrow(unknown);
});

test('before the keys of the store are known nobody gets in, but those of the settings', () => {
  const ring = createKeyRing(['from-config'], { keys: () => new Promise(() => {}) });
  ring.start();
  ring.stop();
  expect(() => ring.check(undefined, false)).toThrow(expect.objectContaining({ code: 'store_loading' }));
  expect(() => ring.check('anything', false)).toThrow(expect.objectContaining({ code: 'store_loading' }));
  expect(ring.check('from-config', false).scopes).toEqual(['ask']);
});

test('a store that fails later leaves the keys as they were known', async () => {
  const { key, record } = stored('phone', 'ask');
  const troubles: Error[] = [];
  const answers = [async () => [record], async () => Promise.reject(new Error('gone'))];
  const ring = createKeyRing([], { keys: () => (answers.shift() as () => Promise<KeyRecord[]>)() }, (error) =>
    troubles.push(error),
  );
  ring.start();
  await eventually(() => answers.length === 1);
  ring.stop();
  ring.start();
  await eventually(() => troubles.length === 1);
  ring.stop();
  expect(ring.check(key, false).keyId).toBe(record.id);
  expect(() => ring.check(undefined, false)).toThrow(unknown);
});

test('without any key the server is open, and its user may do all', () => {
  const identity = createKeyRing([]).check(undefined, false);
  expect(identity.keyId).toBe('anonymous');
  for (const scope of ['ask', 'feedback', 'admin'] as const) expect(hasScope(identity, scope)).toBe(true);
});

test('without any key a page of another origin may ask only, and is told what to do', () => {
  const identity = createKeyRing([]).check('dummy', true);
  expect(identity.keyId).toBe('anonymous');
  expect(hasScope(identity, 'ask')).toBe(true);
  for (const scope of ['feedback', 'admin'] as const)
    expect(() => assertScope(identity, scope)).toThrow(
      expect.objectContaining({
        code: 'insufficient_scope',
        message: expect.stringContaining('searchloop keys create'),
      }),
    );
});

test('a key is worth the same from every page', () => {
  const ring = createKeyRing(['from-config']);
  expect(ring.check('from-config', true)).toEqual(ring.check('from-config', false));
  expect(() => ring.check(undefined, true)).toThrow(unknown);
});

test('whoever revokes the last key does not let everybody in', async () => {
  const { key, record } = stored('only', 'ask');
  const answers: KeyRecord[][] = [[record], [{ ...record, revokedAt: 1 }]];
  const ring = createKeyRing([], { keys: async () => answers.shift() ?? [] });
  const codeOf = (given: string | undefined): string | null => {
    try {
      ring.check(given, false);
      return null;
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  ring.start();
  await eventually(() => codeOf(key) === null);
  ring.stop();
  ring.start();
  await eventually(() => codeOf(key) === 'invalid_api_key');
  ring.stop();
  expect(codeOf(undefined)).toBe('invalid_api_key');
});

test('revoked keys are none; only the admin has every scope', async () => {
  const { key, record } = stored('old', 'ask');
  const ring = createKeyRing(['other'], { keys: async () => [{ ...record, revokedAt: 1 }] });
  ring.start();
  await eventually(() => {
    try {
      ring.check(key, false);
      return false;
    } catch (error) {
      return (error as { code: string }).code === 'invalid_api_key';
    }
  });
  ring.stop();
  const asker = { keyId: 'k', scopes: ['ask'] as const };
  expect(() => assertScope(asker, 'feedback')).toThrow(
    expect.objectContaining({ code: 'insufficient_scope' }),
  );
  expect(() => assertScope({ keyId: 'k', scopes: ['admin'] }, 'feedback')).not.toThrow();
});
