// Where the code of a worker lies. Threads run JavaScript only, so always in dist/, also under the test runner.

import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UnavailableError } from '../../errors.js';

/** As in config/, which is not loaded here: it would make up most of the time that a worker takes to start. */
const packageRoot = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');

/**
 * File of a worker entry.
 * @param name  path below src/ without extension, such as `engine/worker`; or an absolute file path
 * @throws {UnavailableError} when it is not built
 */
export function workerEntry(name: string): string {
  const file = isAbsolute(name) ? name : join(packageRoot, 'dist', `${name}.js`);
  if (!existsSync(file))
    throw new UnavailableError(`worker entry ${file} does not exist: run "npm run build"`);
  return file;
}
