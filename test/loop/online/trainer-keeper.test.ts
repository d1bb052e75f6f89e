// Which checkpoints the loop keeps, to come back to.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkpointsOf, type LoopHouse } from '../../../src/loop/online/house.js';
import { newLoopState } from '../../../src/loop/online/state.js';
import { TrainerKeeper } from '../../../src/loop/online/trainer-keeper.js';
import { commitCheckpoint } from '../../../src/training/checkpoint/store.js';
import { newWatch } from '../support/watch.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-trainer-keeper-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('kept are the checkpoints of versions that stay on disk, also of an old one that was confirmed last', async () => {
  const root = checkpointsOf(folder);
  for (let step = 0; step <= 9; step++)
    await commitCheckpoint(root, step, async () => ({
      version: `v${step}`,
      parent: null,
      configDigest: 'a'.repeat(64),
    }));
  const keeper = new TrainerKeeper({ folder, settings: { keepVersions: 2 } } as unknown as LoopHouse);
  const state = {
    ...newLoopState(0, 'base'),
    ledger: { trainerStep: 8, version: 'v8', checkpoint: 'step-00000008', state: '' },
    published: [1, 2, 3, 4, 5].map((trainerStep) => ({ version: `v${trainerStep}`, trainerStep, at: 0 })),
    live: 'v5',
    confirmed: 'v2',
    stableStep: 7,
    watch: newWatch({ version: 'v5', against: 'v3', trainerStep: 5 }),
  };
  await keeper.prune(state);
  const steps = readdirSync(root).map((name) => Number(name.slice('step-'.length)));
  expect(steps.sort((a, b) => a - b)).toEqual([0, 2, 3, 4, 5, 7, 8]);
  expect(await keeper.returnTo(state, 2)).toMatchObject({ ledger: { trainerStep: 2, version: 'v2' } });
});
