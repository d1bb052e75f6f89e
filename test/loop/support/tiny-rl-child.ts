// A run in a process of its own, to be killed: `node tiny-rl-child.mjs HOME OUTPUT ALGORITHM`.

import type { AlgorithmName } from '../../../src/training/index.js';
import { tinyRun } from './tiny-rl-run.js';

const [home, output, algorithm] = process.argv.slice(2) as [string, string, AlgorithmName];
tinyRun({ home, output, algorithm, resume: true }).then(({ last }) => process.stdout.write(`${last}\n`));
