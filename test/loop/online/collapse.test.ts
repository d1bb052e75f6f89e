// The collapse guard's alarm over the whole loop: the step is thrown away, training is back where it was stable, and
// somebody is told.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readLoopState } from '../../../src/loop/online/state.js';
import { eventually } from '../../support/eventually.js';
import { post } from '../../support/test-server.js';
import { openLoopHouse, type RunningHouse } from '../support/loop-house.js';
import { importTiny } from '../support/tiny-rl-run.js';

jest.setTimeout(600_000);

const home = mkdtempSync(join(tmpdir(), 'searchloop-collapse-'));
const news: { event: string; reasons: string[] }[] = [];
const hooks = createServer((request, response) => {
  let body = '';
  request.on('data', (data) => {
    body += data;
  });
  request.on('end', () => {
    news.push(JSON.parse(body));
    response.end();
  });
});
let house: RunningHouse;
beforeAll(async () => {
  await importTiny(home, join(__dirname, '..', '..', 'fixtures'));
  await new Promise<void>((resolve) => hooks.listen(0, '127.0.0.1', resolve));
  house = await openLoopHouse(home, {
    'loop.webhooks': [`http://127.0.0.1:${(hooks.address() as AddressInfo).port}/`],
    'training.batchSequences': 4,
    // The first step is at no distance from the start, each later one too far.
    'loop.guardMaxKl': 1e-9,
    'loop.guardPatience': 2,
  });
});
afterAll(async () => {
  await house?.close();
  hooks.close();
  rmSync(home, { recursive: true, force: true });
});

test('a policy that collapses: back at the last one that was seen to be sound, paused, and told', async () => {
  for (const colour of ['red', 'green', 'blue', 'white']) {
    const messages = [{ role: 'user', content: `What is ${colour}?` }];
    const response = await post(`${house.url}/v1/chat/completions`, { model: 'searchloop', messages });
    const { id } = (await response.json()) as { id: string };
    await post(`${house.url}/v1/feedback`, { id, golden_answers: ['x'] });
  }
  const candidates: (string | null)[] = [];
  for (let step = 0; step < 3; step++) candidates.push((await house.loop.step()).candidate);
  expect(house.failures).toEqual([]);
  const [first, strike, back] = candidates;
  expect(strike).not.toBe(first);
  // The first step found nothing wrong with the start; what came out of it was too far away already.
  expect([first, strike]).not.toContain(back);
  const collapsed = house.loop.status();
  expect(collapsed).toMatchObject({ state: 'paused', step: 2, last_error: null });
  expect(collapsed.paused_for).toMatch(
    /^the policy begins to collapse: KL to the reference .*2 steps in a row; training is back at its step 0$/,
  );
  // Also after a restart: what readyz says of it is in the state.
  expect(house.loop.trouble()).toBe(`it has paused itself: ${collapsed.paused_for}`);
  expect(await readLoopState(house.store)).toMatchObject({ pausedItself: true });
  await eventually(() => news.length > 0);
  expect(news).toMatchObject([{ event: 'paused', reasons: [collapsed.paused_for] }]);

  await house.loop.resume();
  expect(house.loop.trouble()).toBeNull();
  const { state, step, candidate } = await house.loop.step();
  expect([state, step]).toEqual(['waiting', 3]);
  const parents = new Map((await house.store.adapters()).map((item) => [item.digest, item.parentDigest]));
  expect(parents.get(strike as string)).toBe(first);
  expect(parents.get(first as string)).toBe(back);
  expect(parents.get(candidate as string)).toBe(back);
  expect(parents.size).toBe(3);
});
