// Installs PyTorch and PEFT where benchmarks find them, in a virtual environment of their own.
//
// PyTorch's package asks for gigabytes of CUDA libraries. Here it comes without them: the two small ones that its CPU
// part calls are installed, empty ones stand in for the others (cuda_stand_ins.py).

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '#searchloop/config/index.js';
import { note } from '../report.js';
import { must, printed } from './install.js';

export const PYTORCH = '2.15.0';
const TRANSFORMERS = '5.24.0';
export const PEFT = '0.21.2';

/** What PyTorch, transformers, PEFT and accelerate import on a CPU. */
const IMPORTED = [
  'cuda-toolkit[cudart,cupti,cufile]==13.2.2',
  'filelock',
  'fsspec',
  'jinja2',
  'networkx',
  'numpy',
  'psutil',
  'pyyaml',
  'setuptools',
  'sympy',
  'typing-extensions',
  `transformers==${TRANSFORMERS}`,
];

const PROBE = 'import torch, transformers, peft; print(torch.__version__.split("+")[0], peft.__version__)';
const VERSIONS = `${PYTORCH} ${PEFT}`;

/** Returns the interpreter of the environment; makes it at the first call (some minutes, two gigabytes). */
export function installPyTorch(folder: string): string {
  const environment = join(folder, 'pytorch');
  const python = join(environment, 'bin', 'python');
  // Written last.
  const stamp = join(environment, 'installed.txt');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === VERSIONS) return python;
  note('installing PyTorch and PEFT, which takes a while');
  mkdirSync(folder, { recursive: true });
  must('python3', ['-m', 'venv', environment]);
  const pip = (...args: string[]): void => must(python, ['-m', 'pip', 'install', '-q', ...args]);
  pip('--no-deps', `torch==${PYTORCH}`, `peft==${PEFT}`, 'accelerate');
  pip(...IMPORTED);
  const site = printed(python, 'import sysconfig; print(sysconfig.get_path("purelib"))');
  must(python, [join(packageRoot, 'bench', 'rivals', 'cuda_stand_ins.py'), join(site, 'torch', 'lib')]);
  const found = printed(python, PROBE);
  if (found !== VERSIONS)
    throw new Error(`${environment}: expected PyTorch and PEFT ${VERSIONS}, got "${found}"`);
  writeFileSync(stamp, VERSIONS);
  return python;
}
