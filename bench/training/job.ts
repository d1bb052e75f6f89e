// One side of the comparison, in a process of its own: some steps over one text; times, losses and the peak of memory.

import { spawn } from 'node:child_process';
import type { Text, TrainingSetup } from './shared-setup.js';

export interface TrainingJob extends TrainingSetup {
  /** Of one step; all of one length. */
  readonly texts: readonly Text[];
  /** PyTorch's: most tokens of a forward run. Ours has its own setting of the same value. */
  readonly microBatchTokens: number;
  /** Ours: where the model lies. */
  readonly home: string;
  readonly modelId: string;
  readonly threads: number;
  readonly steps: number;
  readonly learningRate: number;
  readonly maxGradientNorm: number;
}

export interface TrainingSample {
  /** One for each step; the first is the warm-up. */
  readonly seconds: readonly number[];
  readonly losses: readonly number[];
  /** VmHWM of the process, MiB. */
  readonly peakMebibytes: number;
}

/** The job goes in as JSON, the sample comes out as the last line. */
export function runJob(command: string, args: readonly string[], job: TrainingJob): Promise<TrainingSample> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
    child.once('error', reject);
    child.once('close', (code, signal) => {
      const last = printed.trim().split('\n').at(-1) ?? '';
      if (code !== 0 || !last.startsWith('{'))
        reject(new Error(`${command} ${args.join(' ')} ended with ${code ?? signal}: ${last.slice(0, 500)}`));
      else resolve(JSON.parse(last) as TrainingSample);
    });
    // A child that ends before it has read all is told of by its exit code.
    child.stdin.on('error', () => {});
    child.stdin.end(JSON.stringify(job));
  });
}
