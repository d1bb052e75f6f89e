import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { packageRoot } from '../config/index.js';
import { UnavailableError } from '../errors.js';

/** Runs a benchmark of a source checkout; `npm run bench` builds first and does the same. */
export function benchCommand(): Command {
  return new Command('bench')
    .description('run a benchmark (source checkouts only): bench NAME [arguments]')
    .argument('[arguments...]')
    .allowUnknownOption()
    .action(async (args: string[]) => {
      const script = join(packageRoot, 'bench', 'run.mjs');
      if (!existsSync(script))
        throw new UnavailableError(`benchmarks come with a source checkout; ${script} is missing`);
      const child = spawn(process.execPath, [script, ...args], { stdio: 'inherit' });
      process.exitCode = await new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)));
    });
}
