import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A stored JSON file of test/fixtures. */
export const fixture = <T>(...path: string[]): T =>
  JSON.parse(readFileSync(join(__dirname, '..', 'fixtures', ...path), 'utf8')) as T;
