// What a user notices of a micro-batch that goes on at nice 19: the pause between two tokens of a stream alone, and beside a
// trainer that runs one micro-batch after the other without end, in turns. The loop itself starts none while users ask, so
// this is more than it ever does.
//
//   npm run bench -- beside [--rounds 4] [--seconds 20] [--model smollm2-135m-instruct]
//
// Everything else that runs meanwhile is in the figures.

import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { homeFolder, loadConfig } from '#searchloop/config/index.js';
import { createEngine, type Engine, RAW_POLICY } from '#searchloop/engine/index.js';
import { ensureModel, preparePrecision } from '#searchloop/model/index.js';
import { openTrainer, runSettings, type StepWork, type Trainer } from '#searchloop/training/index.js';
import { type Figure, median, percentile, printReport } from './report.js';

/** Of the 95th percentile: what the loop may cost users. */
const MOST_RATIO = 1.15;
const SEQUENCE_TOKENS = 256;
const PROMPT_TOKENS = 64;
/** Time in which the trainer gets going before a turn of measuring begins. */
const SETTLE_MS = 2000;

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: 'string', default: '4' },
      seconds: { type: 'string', default: '20' },
      model: { type: 'string', default: 'smollm2-135m-instruct' },
    },
  });
  const config = loadConfig({ flags: { 'model.policy': values.model, 'engine.maxSequences': 4 } });
  const home = homeFolder(config);
  const model = await ensureModel(values.model, home);
  const root = mkdtempSync(join(tmpdir(), 'searchloop-beside-'));
  const engine = await createEngine({
    modelId: values.model,
    graphs: await preparePrecision(home, model, config.engine.precision),
    tokenizer: await model.readTokenizer(),
    settings: config.engine,
  });
  const settings = runSettings(config.training, 'sft');
  const trainer = await openTrainer({
    entry: 'training/trainer/decoder-task',
    spec: {
      home,
      modelId: values.model,
      precision: config.engine.precision,
      trained: 'lora',
      rank: settings.rank,
      alpha: settings.alpha,
      seed: 1,
      adapter: null,
      critic: false,
      threads: availableParallelism(),
      activationBytes: config.training.activationMebibytes * 2 ** 20,
    },
    root,
    configDigest: 'bench',
    from: null,
    niceness: config.training.niceness,
  });
  const gaps = { alone: [] as number[], beside: [] as number[] };
  try {
    await streamFor(engine, 2000);
    for (let round = 0; round < Number(values.rounds); round++) {
      gaps.alone.push(...(await streamFor(engine, 1000 * Number(values.seconds))));
      const stop = new AbortController();
      const training = trainWithoutEnd(trainer, workOf(settings, engine), stop.signal);
      await sleep(SETTLE_MS);
      gaps.beside.push(...(await streamFor(engine, 1000 * Number(values.seconds))));
      stop.abort();
      await training;
      process.stderr.write(`round ${round + 1}: median ${median(gaps.alone).toFixed(1)} ms alone\n`);
    }
  } finally {
    await trainer.close();
    await engine.close();
    rmSync(root, { recursive: true, force: true });
  }
  printReport('beside', figuresOf(gaps));
  return 0;
}

/** Pauses between tokens of one stream after another, ms. */
async function streamFor(engine: Engine, ms: number): Promise<number[]> {
  const gaps: number[] = [];
  const end = performance.now() + ms;
  while (performance.now() < end) {
    const sequence = await engine.open({ maxLength: SEQUENCE_TOKENS });
    sequence.append(Array.from({ length: PROMPT_TOKENS }, (_, i) => 100 + i));
    let before: number | null = null;
    const turn = sequence.generate({
      sampling: { ...RAW_POLICY, temperature: 1 },
      maxTokens: SEQUENCE_TOKENS - PROMPT_TOKENS,
      stopStrings: [],
      stopTokenIds: [],
      ignoreEos: true,
    });
    for await (const _token of turn) {
      const now = performance.now();
      if (before !== null) gaps.push(now - before);
      before = now;
      if (now > end) break;
    }
    sequence.close();
  }
  return gaps;
}

async function trainWithoutEnd(trainer: Trainer, work: StepWork, signal: AbortSignal): Promise<void> {
  while (!signal.aborted)
    await trainer.run({ ...work, step: trainer.step + 1 }, { signal }).catch((error: Error) => {
      if (!signal.aborted) throw error;
    });
}

/** Full micro-batches of text that says nothing. */
function workOf(settings: ReturnType<typeof runSettings>, engine: Engine): StepWork {
  const count = 64;
  return {
    step: 1,
    algorithm: settings.objective,
    supervised: true,
    sequences: Array.from({ length: count }, (_, n) => ({
      id: `${n}`,
      tokenIds: Int32Array.from(
        { length: SEQUENCE_TOKENS },
        (_, t) => (n * 31 + t * 7) % engine.info.vocabSize,
      ),
      lossMask: Uint8Array.from({ length: SEQUENCE_TOKENS }, (_, t) => (t === 0 ? 0 : 1)),
      environmentMask: new Uint8Array(SEQUENCE_TOKENS),
      rollout: null,
    })),
    batchEpochs: 1,
    miniBatchSequences: count,
    policy: { learningRate: 1e-5, weightDecay: 0, maxGradientNorm: 1 },
    value: { learningRate: 0, weightDecay: 0, maxGradientNorm: 1 },
    microBatchTokens: settings.microBatchTokens,
    seed: 1,
    version: 'bench',
    reference: null,
    versions: {},
  };
}

function figuresOf({ alone, beside }: Record<'alone' | 'beside', number[]>): Figure[] {
  const ms = (name: string, value: number): Figure => ({ name, value, unit: 'ms', goal: null });
  return [
    ms('gap alone, median', median(alone)),
    ms('gap alone, p95', percentile(alone, 0.95)),
    ms('gap beside a trainer, median', median(beside)),
    ms('gap beside a trainer, p95', percentile(beside, 0.95)),
    {
      name: 'p95 beside / p95 alone',
      value: percentile(beside, 0.95) / percentile(alone, 0.95),
      unit: 'ratio',
      goal: { most: MOST_RATIO },
    },
  ];
}
