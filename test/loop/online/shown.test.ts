// A step with demonstrations, by the whole loop: they are learned, and lineage names the answers that they came from.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StepReceipt } from '../../../src/loop/online/receipt.js';
import { feedback, makeRecord, notes } from '../../trajectory/store/support.js';
import { openLoopHouse } from '../support/loop-house.js';
import { importTiny } from '../support/tiny-rl-run.js';

jest.setTimeout(300_000);

const home = mkdtempSync(join(tmpdir(), 'searchloop-shown-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

test('questions beside those that are rolled out are answered by rule; who deletes one is told which versions learned it', async () => {
  await importTiny(home, join(__dirname, '..', '..', 'fixtures'));
  const house = await openLoopHouse(home, {
    'training.turnTokens': 160,
    'training.observationTokens': 256,
    'rollout.observationTokens': 256,
    'engine.maxSequenceTokens': 1024,
    'training.batchSequences': 2,
    'training.groupSize': 2,
    'loop.demonstrations': 4,
    'loop.gateEvery': 100,
  });
  try {
    const capitals = { Portugal: 'Lisbon', Spain: 'Madrid', Norway: 'Oslo' };
    for (const [land, capital] of Object.entries(capitals)) {
      const question = `What is the capital of ${land}?`;
      const messages = [{ role: 'user', content: question }];
      await house.store.put(makeRecord(land, { question }), notes({ messages }));
      await house.store.addFeedback(feedback(land, { role: 'admin', goldAnswers: [capital] }));
    }
    await house.loop.step();
    expect(house.failures).toEqual([]);
    const [head] = (await house.store.adapterHeads()).filter(({ receipt }) => receipt !== null);
    const receipt = head?.receipt as unknown as StepReceipt;
    const { shown = [], metrics, asGiven } = receipt;
    // Two of the three questions at most: one was rolled out, and some may be held out for the gate.
    expect(shown.length).toBeGreaterThan(0);
    expect(asGiven).toEqual([]);
    expect(metrics).toMatchObject({ demonstrations: shown.length, rollouts: 2, updates: 1 });
    expect(metrics.demonstrationLoss).toBeGreaterThan(0);
    const gone = await house.store.delete({ ids: [shown[0] as string] });
    expect(JSON.stringify(gone)).toContain(head?.digest as string);
  } finally {
    await house.close();
  }
});
