// Where the code of a worker lies. Threads run JavaScript only, so always in dist/, also under the test runner.

import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { packageRoot } from '../../config/index.js';
import { UnavailableError } from '../../errors.js';

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
