import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { homeFolder, loadConfig } from '../../../src/config/index.js';

const HERE = join(__dirname, '..');

/**
 * The interpreter named by INTEROP_PYTHON, else that of a virtual environment of its own, which is made at the first
 * call and takes many minutes.
 */
function interpreter(): string {
  if (process.env.INTEROP_PYTHON !== undefined) return process.env.INTEROP_PYTHON;
  const folder = join(homeFolder(loadConfig()), 'interop');
  const python = join(folder, 'bin', 'python');
  const wanted = readFileSync(join(HERE, 'requirements.txt'), 'utf8');
  const stamp = join(folder, 'installed.txt');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return python;
  mkdirSync(folder, { recursive: true });
  run('python3', ['-m', 'venv', folder]);
  run(python, ['-m', 'pip', 'install', '-q', '-r', join(HERE, 'requirements.txt')]);
  run('cp', [join(HERE, 'requirements.txt'), stamp]);
  return python;
}

function run(command: string, args: readonly string[]): string {
  const { status, stdout, error } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`);
  return stdout;
}

/** Runs `python/check.py` with JSON in and out. */
export function askPython<Answer>(task: Readonly<Record<string, unknown>>): Answer {
  const text = run(interpreter(), [join(HERE, 'python', 'check.py'), JSON.stringify(task)]);
  return JSON.parse(text.trim().split('\n').at(-1) as string) as Answer;
}
