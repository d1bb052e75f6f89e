// A store that stalls or fails costs no answer: it comes whole, and says that nobody knows whether it is kept.

import { recordKeeping } from '../../../src/cli/store.js';
import { loadConfig } from '../../../src/config/index.js';
import { createRolloutRunner, loadPrompts } from '../../../src/rollout/index.js';
import type { AnswerStore } from '../../../src/server/context.js';
import { createLogger } from '../../../src/telemetry/index.js';
import type { TrajectoryStore } from '../../../src/trajectory/index.js';
import { eventually } from '../../support/eventually.js';
import { createMemoryRetriever } from '../../support/memory-retriever.js';
import { createKit, PASSAGES } from '../../support/rollout-kit.js';
import { post, scriptedPolicy, sseData, startTestServer } from '../../support/test-server.js';

/** @param put  what becomes of each record */
async function serverOver(put: () => Promise<unknown>, trouble: string | null) {
  const { tokenizer, generator } = createKit({ turns: ['<answer>Lisbon</answer>'] });
  const store = {
    put,
    keys: async () => [],
    health: () => ({ trouble }),
  } as unknown as TrajectoryStore & AnswerStore;
  const config = loadConfig({ env: {}, flags: { 'store.commitTimeoutMs': 20 } });
  const runner = createRolloutRunner({
    generator,
    tokenizer,
    retriever: createMemoryRetriever({ passages: PASSAGES }),
    config: config.rollout,
    prompts: loadPrompts({ prompt: 'search-r1' }),
    ...recordKeeping(store, config, createLogger({ level: 'silent' })),
  });
  const value = { ...scriptedPolicy(runner), tokenizer };
  const server = await startTestServer({ store, parts: { policy: () => ({ state: 'ready', value }) } });
  await eventually(async () => (await fetch(`${server.url}/v1/models`)).status === 200);
  return server;
}

interface Said {
  readonly id: string;
  readonly choices: readonly {
    readonly message?: { readonly content: string };
    readonly delta?: { readonly content?: string };
    readonly searchloop?: object;
  }[];
}
const question = { model: 'searchloop', messages: [{ role: 'user', content: 'capital of Portugal?' }] };

test.each([
  ['stalls', () => new Promise(() => {}), 'no answer for 3 s', false],
  ['fails', () => Promise.reject(new Error('disk full')), 'disk full', false],
  ['works', async () => {}, null, true],
] as const)('a store that %s: answers are whole, and say so', async (_what, put, trouble, stored) => {
  const server = await serverOver(put, trouble);
  try {
    const url = `${server.url}/v1/chat/completions`;
    const whole = (await (await post(url, question)).json()) as Said;
    expect(whole.choices).toMatchObject([
      { message: { content: 'Lisbon' }, searchloop: { answer_id: whole.id, stored } },
    ]);
    const data = sseData(await (await post(url, { ...question, stream: true })).text());
    expect(data.pop()).toBe('[DONE]');
    const chunks = data.map((chunk) => JSON.parse(chunk) as Said);
    expect(chunks.map(({ choices }) => choices[0]?.delta?.content ?? '').join('')).toBe('Lisbon');
    const notes = chunks.flatMap(({ choices }) => choices.flatMap(({ searchloop }) => searchloop ?? []));
    expect(notes.at(-1)).toEqual({ answer_id: chunks[0]?.id, stored });

    const ready = await fetch(`${server.url}/readyz`);
    expect([ready.status, await ready.json()]).toMatchObject([
      200,
      trouble === null ? { status: 'ready' } : { status: 'degraded', reasons: [`the store: ${trouble}`] },
    ]);
  } finally {
    await server.close();
  }
});
