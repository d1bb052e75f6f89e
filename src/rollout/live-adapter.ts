import type { MethodName } from './events.js';

/**
 * The adapter of a request that names none: an adapter that learned one method spoils the others.
 *
 * @param liveMethods `model.liveMethods`
 * @returns undefined, the live adapter, or null, the base model
 */
export const adapterFor = (method: MethodName, liveMethods: readonly MethodName[]): undefined | null =>
  liveMethods.includes(method) ? undefined : null;
