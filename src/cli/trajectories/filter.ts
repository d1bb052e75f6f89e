// Which stored answers a command is about.

import { type Command, InvalidArgumentError } from 'commander';
import { NotFoundError } from '../../errors.js';
import type { RecordFilter, StoredHead } from '../../trajectory/index.js';

export interface FilterFlags {
  readonly user?: string;
  readonly key?: string;
  readonly before?: number;
  readonly after?: number;
}

export function withFilter(command: Command): Command {
  return command
    .option('--user <name>', 'of this person (user or safety_identifier of the request)')
    .option('--key <id>', 'asked with this API key')
    .option('--before <time>', 'made before (ISO 8601)', timeOf)
    .option('--after <time>', 'made after (ISO 8601)', timeOf);
}

/** What the flags and ids name. */
export function filterOf(flags: FilterFlags, ids: readonly string[] = []): RecordFilter {
  return {
    ...(ids.length > 0 ? { ids } : {}),
    ...(flags.user === undefined ? {} : { userKey: flags.user }),
    ...(flags.key === undefined ? {} : { keyId: flags.key }),
    ...(flags.before === undefined ? {} : { createdBefore: flags.before }),
    ...(flags.after === undefined ? {} : { createdAfter: flags.after }),
  };
}

function timeOf(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new InvalidArgumentError('expected a time such as 2026-01-31T12:00:00Z');
  return time;
}

/** @throws {NotFoundError} naming the ids that were not found */
export function refuseUnknown(ids: readonly string[], found: readonly Pick<StoredHead, 'id'>[]): void {
  const known = new Set(found.map(({ id }) => id));
  const unknown = ids.filter((id) => !known.has(id)).map((id) => `"${id}"`);
  if (unknown.length > 0) throw new NotFoundError(`there is no such stored answer: ${unknown.join(', ')}`);
}
