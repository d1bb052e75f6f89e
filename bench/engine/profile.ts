// Where the time of a decode step goes, by differences: with and without context, with and without adapter, within and
// outside of the run.

import type { Engine } from '#searchloop/engine/index.js';
import { type DecoderConfig, LINEAR_MODULES, linearShape } from '#searchloop/model/index.js';
import { median } from '../report.js';
import { decode } from './ours.js';

const SHORT = 16;
const LONG = 512;
const REPEATS = 3;
const TOKENS = 12;

/** Multiplications of one token with all weights. */
function products(config: DecoderConfig): number {
  const layer = LINEAR_MODULES.reduce((sum, module) => {
    const [out, inner] = linearShape(config, module);
    return sum + out * inner;
  }, 0);
  return config.layers * layer + config.vocabSize * config.hiddenSize;
}

interface Step {
  /** Milliseconds. */
  readonly run: number;
  readonly other: number;
}

async function step(
  engine: Engine,
  batch: number,
  context: number,
  adapters: readonly string[],
): Promise<Step> {
  const steps: Step[] = [];
  for (let repeat = 0; repeat <= REPEATS; repeat++) {
    const before = await engine.profile();
    await decode(engine, batch, context, TOKENS, adapters);
    const after = await engine.profile();
    const count = after.decodeSteps - before.decodeSteps;
    // The first reads the context in.
    if (repeat > 0)
      steps.push({
        run: (after.decodeRunMs - before.decodeRunMs) / count,
        other: (after.decodeOtherMs - before.decodeOtherMs) / count,
      });
  }
  return { run: median(steps.map(({ run }) => run)), other: median(steps.map(({ other }) => other)) };
}

/** One line for each batch size. */
export async function profileSteps(engine: Engine, config: DecoderConfig): Promise<string[]> {
  const lines: string[] = [];
  for (const batch of [1, 8, 16]) {
    const short = await step(engine, batch, SHORT, []);
    const long = await step(engine, batch, LONG, []);
    const adapted = await step(engine, batch, LONG, ['v0']);
    const whole = long.run + long.other;
    const share = (ms: number) => `${ms.toFixed(1)} ms (${Math.round((100 * ms) / whole)} %)`;
    const speed = (batch * products(config)) / short.run / 1e6;
    lines.push(
      `profile, decode ${batch}: a step takes ${whole.toFixed(1)} ms: products with weights ${share(short.run)}, which is ` +
        `${speed.toFixed(1)} billion multiplications a second; attention over ${LONG} positions ${share(long.run - short.run)}; ` +
        `sampling and scheduling ${share(long.other)}; an adapter adds ${share(adapted.run - long.run)}`,
    );
  }
  return lines;
}
