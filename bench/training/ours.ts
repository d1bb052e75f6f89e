// Our side of the comparison: the product's own trainer, in its thread of the pool, with the settings of `train sft`.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '#searchloop/config/index.js';
import { type DecoderSpec, openTrainer, runSettings, type StepWork } from '#searchloop/training/index.js';
import type { TrainingJob, TrainingSample } from './job.js';

const job = JSON.parse(readFileSync(0, 'utf8')) as TrainingJob;
const root = mkdtempSync(join(tmpdir(), 'searchloop-bench-'));
try {
  process.stdout.write(`${JSON.stringify(await measure())}\n`);
} finally {
  rmSync(root, { recursive: true });
}

async function measure(): Promise<TrainingSample> {
  const { training } = loadConfig();
  const spec: DecoderSpec = {
    home: job.home,
    modelId: job.modelId,
    precision: 'q8',
    trained: 'lora',
    rank: 16,
    alpha: 32,
    seed: 0,
    adapter: job.adapter,
    critic: false,
    threads: job.threads,
    lanes: training.lanes,
    activationBytes: training.activationMebibytes * 2 ** 20,
  };
  const trainer = await openTrainer({
    entry: 'training/trainer/decoder-task',
    spec,
    root,
    configDigest: 'bench',
    from: null,
    niceness: training.niceness,
  });
  const seconds: number[] = [];
  const losses: number[] = [];
  try {
    for (let step = 1; step <= job.steps; step++) {
      const work = stepWork(step);
      const begin = performance.now();
      const { metrics } = await trainer.run(work);
      seconds.push((performance.now() - begin) / 1000);
      losses.push(metrics.loss as number);
    }
  } finally {
    await trainer.close();
  }
  const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return { seconds, losses, peakMebibytes: Number(peak) / 1024 };
}

function stepWork(step: number): StepWork {
  const { texts, learningRate, maxGradientNorm } = job;
  const { training } = loadConfig();
  const settings = runSettings(training, 'sft');
  const rule = { learningRate, weightDecay: 0, maxGradientNorm };
  return {
    step,
    version: '',
    algorithm: settings.objective,
    supervised: true,
    sequences: texts.map(({ tokenIds, targets }, i) => {
      const lossMask = new Uint8Array(tokenIds.length);
      for (const t of targets) lossMask[t] = 1;
      return {
        id: `text-${i}`,
        tokenIds: Int32Array.from(tokenIds),
        lossMask,
        environmentMask: lossMask.map((mask) => 1 - mask),
        rollout: null,
      };
    }),
    demonstrationWeight: 0,
    batchEpochs: 1,
    miniBatchSequences: texts.length,
    policy: rule,
    value: rule,
    microBatchTokens: settings.microBatchTokens,
    seed: step,
    reference: null,
    versions: {},
  };
}
