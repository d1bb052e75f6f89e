// The trainer's entry over bigram models, for threads of the pool; compiled by `compileEntry`.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { trainerTask } from '../../../src/training/index.js';
import type { OpenTrainable } from '../../../src/training/trainer/trainable.js';
import { sha256Hex } from '../../../src/util/digest.js';
import { bigramModel } from './bigram-model.js';

export interface BigramSpec {
  readonly vocabSize: number;
  readonly critic: boolean;
  readonly seed: number;
  /**
   * A file that makes a forward pass go wrong: `exit N` or `nan N` after N passes, once; `always` each time. With `wait N` the pass
   * after those goes on when the file is gone.
   */
  readonly trouble?: string;
}

const openBigram: OpenTrainable<BigramSpec> = async ({ vocabSize, critic, seed, trouble }) => {
  let seen = 0;
  const interfere = (model: { parameters: readonly { values: Float32Array }[] }): void => {
    if (trouble === undefined || !existsSync(trouble)) return;
    const [what, after] = readFileSync(trouble, 'utf8').split(' ');
    if (what === 'always') process.exit(9);
    if (seen++ < Number(after ?? 0)) return;
    while (what === 'wait' && existsSync(trouble))
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    rmSync(trouble, { force: true });
    if (what === 'exit') process.exit(9);
    if (what === 'nan') (model.parameters[0] as { values: Float32Array }).values[3] = Number.NaN;
  };
  return {
    policy: {
      model: bigramModel({ vocabSize, kind: 'policy', seed, interfere }),
      form: { kind: 'whole' },
    },
    critic: critic
      ? { model: bigramModel({ vocabSize, kind: 'value', seed }), form: { kind: 'whole' } }
      : null,
    versionOf: async (folder) => sha256Hex(readFileSync(join(folder, 'model.safetensors'))),
    close: () => {},
  };
};

export default trainerTask(openBigram);
