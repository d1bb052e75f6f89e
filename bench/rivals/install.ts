// Installs the rivals where benchmarks find them: a virtual environment with llama-cpp-python built on this
// machine, and node-llama-cpp with its prebuilt binaries. Nothing of it touches the project's own packages.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { note } from '../report.js';

const LLAMA_CPP_PYTHON = '0.3.36';
const NODE_LLAMA_CPP = '3.21.1';

export function must(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): void {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'], ...options });
  if (error) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`);
}

/** What a line of Python says. */
export const printed = (python: string, code: string): string =>
  spawnSync(python, ['-c', code], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).stdout.trim();

/** Returns the interpreter of the environment; builds it at the first call (many minutes on two cores). */
export function installLlamaCppPython(folder: string): string {
  const environment = join(folder, 'llama-cpp');
  const python = join(environment, 'bin', 'python');
  const probe = existsSync(python) ? printed(python, 'import llama_cpp; print(llama_cpp.__version__)') : '';
  if (probe === LLAMA_CPP_PYTHON) return python;
  note('building llama-cpp-python, which takes a while');
  mkdirSync(folder, { recursive: true });
  must('python3', ['-m', 'venv', environment]);
  must(
    join(environment, 'bin', 'pip'),
    ['install', '-q', 'numpy', '--no-binary', 'llama-cpp-python', `llama-cpp-python==${LLAMA_CPP_PYTHON}`],
    { env: { ...process.env, CMAKE_ARGS: '-DGGML_NATIVE=ON' } },
  );
  return python;
}

/** Returns the folder whose node_modules holds node-llama-cpp. */
export function installNodeLlamaCpp(folder: string): string {
  const home = join(folder, 'node-llama-cpp');
  if (existsSync(join(home, 'node_modules', 'node-llama-cpp', 'package.json'))) return home;
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, 'package.json'), '{"private":true,"type":"module"}\n');
  must(
    'npm',
    ['install', '--ignore-scripts', '--no-audit', '--no-fund', `node-llama-cpp@${NODE_LLAMA_CPP}`],
    { cwd: home },
  );
  return home;
}
