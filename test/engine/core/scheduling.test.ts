import { createTokenizer } from '../../../src/tokenizer/index.js';
import { readJson } from '../../support/fixtures.js';
import { ask, openCore, type SteppedCore, turnOptions } from '../support/tiny-models.js';

const { prompt, continuation } = readJson('forward', 'tiny-llama.json').decode as {
  prompt: number[];
  continuation: number[];
};

const greedy = (changes = {}) => turnOptions({ maxTokens: 24, ...changes }, { temperature: 0 });

/** A prompt of its own: no common prefix with others. */
const longPrompt = (length: number, salt = 0): number[] =>
  Array.from({ length }, (_, i) => (i * 37 + salt * 101 + 3) % 500);

async function idsAlone(ids: readonly number[], options = greedy(), seed = 1): Promise<number[]> {
  const stepped = await openCore();
  stepped.send(...ask(1, ids, options, { seed }));
  await stepped.settle();
  return stepped.heard(1).ids;
}

describe('prefill', () => {
  test('a long prompt does not stall the others: every round gives each of them a token', async () => {
    const stepped = await openCore();
    stepped.send(...ask(1, prompt, greedy()), ...ask(2, prompt.slice(2), greedy()));
    while ([1, 2].some((id) => stepped.heard(id).ids.length === 0)) await stepped.tick();
    const before = [1, 2].map((id) => stepped.heard(id).ids.length);
    stepped.send(...ask(3, longPrompt(100), greedy({ maxTokens: 4 })));
    let rounds = 0;
    for (; stepped.heard(3).ids.length === 0; rounds++) await stepped.tick();
    expect(rounds).toBe(7); // 100 tokens in chunks of 16
    expect([1, 2].map((id, i) => stepped.heard(id).ids.length - (before[i] as number))).toEqual([7, 7]);
    await stepped.settle();
    expect(stepped.heard(1).ids).toEqual(continuation);
    expect(stepped.heard(3).ids).toEqual(await idsAlone(longPrompt(100), greedy({ maxTokens: 4 })));
  });

  test('alone a prompt is read in whole chunks, beside running sequences in quarters', async () => {
    const widths = async (running: boolean) => {
      const stepped = await openCore({ prefillChunkTokens: 64 });
      if (running) stepped.send(...ask(1, prompt, greedy({ maxTokens: 60 })));
      await stepped.tick();
      const before = stepped.core.profile;
      stepped.send(...ask(2, longPrompt(100), greedy({ maxTokens: 4 })));
      while (stepped.heard(2).ids.length === 0) await stepped.tick();
      const { prefillRuns, prefillTokens } = stepped.core.profile;
      await stepped.settle();
      expect(stepped.heard(2).ids).toEqual(await idsAlone(longPrompt(100), greedy({ maxTokens: 4 })));
      return [prefillRuns - before.prefillRuns, prefillTokens - before.prefillTokens];
    };
    expect(await widths(false)).toEqual([2, 100]);
    expect(await widths(true)).toEqual([7, 100]);
  });

  test('a short prompt behind a long one does not wait for it, and short ones without end do not starve it', async () => {
    const stepped = await openCore();
    stepped.send(
      ...ask(1, longPrompt(96), greedy()),
      ...ask(2, prompt.slice(0, 10), greedy({ maxTokens: 1 })),
    );
    await stepped.tick();
    expect(stepped.heard(2).ids).toHaveLength(1);
    let rounds = 0;
    for (let id = 3; stepped.heard(1).ids.length === 0; id++, rounds++) {
      stepped.send({ kind: 'close', sequence: id - 1 });
      stepped.send(...ask(id, longPrompt(14, id), greedy({ maxTokens: 1 })));
      await stepped.tick();
    }
    expect(rounds).toBeLessThanOrEqual(6 * 4);
  });

  test('several short prompts fit between two decode steps, but no more than the chunk', async () => {
    const stepped = await openCore();
    for (const id of [1, 2, 3]) stepped.send(...ask(id, longPrompt(7, id), greedy()));
    await stepped.tick();
    expect([1, 2, 3].map((id) => stepped.heard(id).ids.length > 0)).toEqual([true, true, false]);
    await stepped.tick();
    expect(stepped.heard(3).ids.length).toBeGreaterThan(0);
  });
});

describe('prefixes', () => {
  test('samples of one prompt at once: it is read once, and each is as if alone', async () => {
    const ids = longPrompt(60);
    const sampled = turnOptions({ maxTokens: 10 });
    const stepped = await openCore();
    for (const id of [1, 2, 3, 4]) stepped.send(...ask(id, ids, sampled));
    await stepped.settle();
    expect(stepped.core.profile.sharedTokens).toBe(3 * 59);
    // Decoding reads the last token of the others.
    expect(stepped.core.profile.prefillTokens).toBe(60);
    const found = [1, 2, 3, 4].map((id) => stepped.heard(id).ids);
    expect(new Set(found.map(String)).size).toBeGreaterThan(1);
    for (const id of [1, 2, 3, 4]) expect(found[id - 1]).toEqual(await idsAlone(ids, sampled, id));
  });

  test('a common beginning is copied, the rest read; a later turn takes over the slot of the earlier one', async () => {
    const stepped = await openCore();
    const question = [...prompt, ...longPrompt(20, 1)];
    stepped.send(...ask(1, question, greedy({ maxTokens: 8 })));
    await stepped.settle();
    const answer = stepped.heard(1).ids;
    stepped.send(...ask(2, [...prompt, ...longPrompt(20, 2)], greedy({ maxTokens: 8 })));
    await stepped.settle();
    expect(stepped.core.profile.sharedTokens).toBe(prompt.length);
    expect(stepped.heard(2).ids).toEqual(
      await idsAlone([...prompt, ...longPrompt(20, 2)], greedy({ maxTokens: 8 })),
    );
    stepped.send({ kind: 'close', sequence: 1 }, { kind: 'close', sequence: 2 });
    const followUp = [...question, ...answer, ...longPrompt(12, 3)];
    stepped.send(...ask(3, followUp, greedy({ maxTokens: 8 })));
    await stepped.settle();
    // The last sampled token was never read.
    expect(stepped.core.profile.sharedTokens - prompt.length).toBe(question.length + answer.length - 1);
    expect(stepped.heard(3).ids).toEqual(await idsAlone(followUp, greedy({ maxTokens: 8 })));
  });

  test('the cache can be switched off', async () => {
    const stepped = await openCore({ prefixCacheTokens: 0 });
    for (const id of [1, 2]) stepped.send(...ask(id, prompt, greedy()));
    await stepped.settle();
    expect(stepped.core.profile.sharedTokens).toBe(0);
    expect(stepped.heard(2).ids).toEqual(continuation);
  });
});

describe('slots', () => {
  test('full pool: all slots decode, and as sequences end their places are used again', async () => {
    const stepped = await openCore();
    for (const id of [1, 2, 3, 4])
      stepped.send(...ask(id, longPrompt(10 + id, id), greedy({ maxTokens: 5 * id })));
    for (let id = 5; id <= 12; id++) {
      while (stepped.heard(id - 4).end === null) await stepped.tick();
      stepped.send({ kind: 'close', sequence: id - 4 });
      stepped.send(...ask(id, longPrompt(10 + id, id), greedy({ maxTokens: 10 })));
    }
    await stepped.settle();
    for (let id = 5; id <= 12; id++)
      expect(stepped.heard(id).ids).toEqual(
        await idsAlone(longPrompt(10 + id, id), greedy({ maxTokens: 10 })),
      );
  });

  test('a hole in the batch is closed by moving a sequence, whose text does not change', async () => {
    const stepped = await openCore();
    for (const id of [1, 2, 3])
      stepped.send(...ask(id, [...prompt, id], greedy({ maxTokens: id === 2 ? 3 : 40 })));
    await stepped.settle();
    expect(stepped.core.profile.moves).toBe(1);
    expect(stepped.heard(3).ids).toEqual(await idsAlone([...prompt, 3], greedy({ maxTokens: 40 })));
    // The one that was moved out of the way goes on where it was.
    stepped.send({ kind: 'append', sequence: 2, ids: Int32Array.from(longPrompt(20)) });
    stepped.send({ kind: 'generate', sequence: 2, turn: 1, options: greedy({ maxTokens: 6 }) });
    const firstTurn = stepped.heard(2).ids.slice();
    await stepped.settle();
    expect(stepped.heard(2).ids.slice(3)).toEqual(
      await idsAlone([...prompt, 2, ...firstTurn, ...longPrompt(20)], greedy({ maxTokens: 6 })),
    );
  });
});

describe('ends', () => {
  const started = async (options = greedy()): Promise<SteppedCore> => {
    const stepped = await openCore();
    stepped.send(...ask(1, prompt, options), ...ask(2, prompt, greedy()));
    for (let i = 0; i < 5; i++) await stepped.tick();
    return stepped;
  };

  test('a cancelled turn samples nothing more and forgets what its caller did not see', async () => {
    const stepped = await started();
    const seen = stepped.heard(1).ids.length;
    expect(seen).toBeGreaterThan(2);
    stepped.send({ kind: 'cancel', sequence: 1, turn: 0, length: prompt.length + 2 });
    await stepped.tick();
    expect(stepped.heard(1).ids).toHaveLength(seen);
    stepped.send({ kind: 'generate', sequence: 1, turn: 1, options: greedy({ maxTokens: 22 }) });
    await stepped.settle();
    const again = stepped.heard(1).steps.filter((step) => step.turn === 1);
    expect(again.map((step) => step.id)).toEqual(continuation.slice(2));
    expect(stepped.heard(2).ids).toEqual(continuation);
  });

  test('a late cancel of an ended turn and commands to a closed sequence do nothing', async () => {
    const stepped = await started(greedy({ maxTokens: 2 }));
    stepped.send({ kind: 'generate', sequence: 1, turn: 1, options: greedy({ maxTokens: 4 }) });
    stepped.send({ kind: 'read', sequence: 1, turn: 0, steps: 2 });
    await stepped.settle();
    expect(stepped.heard(1).ids).toEqual(continuation.slice(0, 6));
    stepped.send({ kind: 'close', sequence: 1 }, { kind: 'close', sequence: 1 });
    stepped.send({ kind: 'append', sequence: 1, ids: Int32Array.of(1) });
    stepped.send({ kind: 'generate', sequence: 1, turn: 2, options: greedy() });
    await stepped.settle();
    expect(stepped.heard(1).ids).toHaveLength(6);
  });

  test('closing frees the slot before the next step', async () => {
    const stepped = await openCore({ maxSequences: 1 });
    stepped.send(...ask(1, prompt, greedy()));
    await stepped.tick();
    stepped.send({ kind: 'close', sequence: 1 }, ...ask(2, prompt, greedy()));
    await stepped.settle();
    expect(stepped.heard(2).ids).toEqual(continuation);
    expect(stepped.heard(1).end).toBeNull();
  });

  test('a full context ends the turn; a further turn ends at once', async () => {
    const stepped = await openCore();
    stepped.send(...ask(1, prompt, greedy({ maxTokens: 50 }), { maxLength: 30 }));
    await stepped.settle();
    expect(stepped.heard(1).ids).toEqual(continuation.slice(0, 13));
    expect(stepped.heard(1).end).toMatchObject({ reason: 'context' });
    stepped.send({ kind: 'generate', sequence: 1, turn: 1, options: greedy() });
    await stepped.settle();
    expect(stepped.heard(1).end).toMatchObject({ reason: 'context', turn: 1 });
    expect(stepped.heard(1).ids).toHaveLength(13);
  });

  test('the whole pool filled to the last position', async () => {
    const stepped = await openCore();
    for (const id of [1, 2, 3, 4]) stepped.send(...ask(id, longPrompt(100, id), greedy({ maxTokens: 500 })));
    await stepped.settle();
    for (const id of [1, 2, 3, 4]) {
      expect(stepped.heard(id).end?.reason).toBe('context');
      expect(stepped.heard(id).ids).toHaveLength(28);
    }
    stepped.send({ kind: 'close', sequence: 2 }, ...ask(5, prompt, greedy()));
    await stepped.settle();
    expect(stepped.heard(5).ids).toEqual(continuation);
  });

  test('a reader who reads nothing pauses its own sequence only, and it goes on where it was', async () => {
    const stepped = await openCore();
    stepped.send(...ask(1, [3], greedy({ maxTokens: 100 })), ...ask(2, [3], greedy({ maxTokens: 100 })));
    const readSecond = async () => {
      while (await stepped.tick()) stepped.send({ kind: 'read', sequence: 2, turn: 0, steps: 1 });
    };
    await readSecond();
    expect(stepped.heard(1).ids).toHaveLength(64);
    expect(stepped.heard(2).ids).toHaveLength(100);
    stepped.send({ kind: 'read', sequence: 1, turn: 0, steps: 64 });
    await stepped.settle();
    expect(stepped.heard(1).ids).toEqual(stepped.heard(2).ids);
  });
});

describe('stops', () => {
  test('a stop token is sampled, gives no text, and wins over the limit that it meets', async () => {
    const stepped = await openCore();
    const stop = continuation[5] as number;
    expect(continuation.indexOf(stop)).toBe(5);
    stepped.send(...ask(1, prompt, greedy({ stopTokenIds: [stop], maxTokens: 6 })));
    stepped.send(...ask(2, prompt, greedy({ maxTokens: 5 })));
    await stepped.settle();
    expect(stepped.heard(1).ids).toEqual(continuation.slice(0, 6));
    expect(stepped.heard(1).end).toMatchObject({ reason: 'stop_token', stopString: null });
    expect(stepped.heard(1).text).toBe(stepped.heard(2).text);
  });

  test("the model's own end tokens stop a turn unless they are ignored", async () => {
    const stepped = await openCore();
    const config = readJson('models', 'tiny-llama', 'generation_config.json');
    const eos = [config.eos_token_id].flat()[0] as number;
    const forced = (ignoreEos: boolean) =>
      turnOptions({ maxTokens: 5, ignoreEos }, { temperature: 0, logitBias: { [eos]: 100 } });
    stepped.send(...ask(1, prompt, forced(false)), ...ask(2, prompt, forced(true)));
    await stepped.settle();
    expect(stepped.heard(1).ids).toEqual([eos]);
    expect(stepped.heard(1).end?.reason).toBe('stop_token');
    expect(stepped.heard(2).ids).toEqual([eos, eos, eos, eos, eos]);
    expect(stepped.heard(2).end?.reason).toBe('max_tokens');
  });

  test('a stop string that crosses tokens ends the turn; neither it nor what follows is ever shown', async () => {
    const free = await openCore();
    free.send(...ask(1, prompt, greedy()));
    await free.settle();
    const { text } = free.heard(1);
    const pieces = free.heard(1).steps.map((step) => step.text);
    // From the middle of one token's text to the middle of a later one's.
    const from = pieces.slice(0, 4).join('').length - 1;
    const stop = text.slice(from, from + 4);
    expect(text.indexOf(stop)).toBe(from);
    const stepped = await openCore();
    stepped.send(...ask(1, prompt, greedy({ stopStrings: ['never there', stop] })));
    await stepped.settle();
    const { end, ids, text: shown } = stepped.heard(1);
    expect(end).toMatchObject({ reason: 'stop_string', stopString: stop });
    expect(shown).toBe(text.slice(0, from));
    expect(ids).toEqual(continuation.slice(0, ids.length));
    expect(ids.length).toBeLessThan(continuation.length);
  });

  test('a stop string that the last allowed token completes is a stop; held text is given at the end otherwise', async () => {
    const free = await openCore();
    free.send(...ask(1, prompt, greedy({ maxTokens: 6 })));
    await free.settle();
    const { text } = free.heard(1);
    const tail = text.slice(-2);
    const stepped = await openCore();
    stepped.send(...ask(1, prompt, greedy({ maxTokens: 6, stopStrings: [tail] })));
    stepped.send(...ask(2, prompt, greedy({ maxTokens: 6, stopStrings: [`${tail}never`] })));
    await stepped.settle();
    expect(stepped.heard(1).end).toMatchObject({ reason: 'stop_string', stopString: tail });
    expect(stepped.heard(1).text).toBe(text.slice(0, text.indexOf(tail)));
    expect(stepped.heard(2).end).toMatchObject({ reason: 'max_tokens' });
    expect(stepped.heard(2).text).toBe(text);
  });

  test('no delta breaks a character, however the tokens cut it, and the pieces join to the whole text', async () => {
    const stepped = await openCore();
    stepped.send(...ask(1, prompt, turnOptions({ maxTokens: 60 }, { temperature: 2 }), { seed: 11 }));
    await stepped.settle();
    const tokenizer = createTokenizer({ tokenizerJson: readJson('models', 'tiny-llama', 'tokenizer.json') });
    expect(stepped.heard(1).text).toBe(tokenizer.decode(stepped.heard(1).ids, { skipSpecial: true }));
  });
});

test('penalties see prompt and output of the sequence', async () => {
  const plain = await idsAlone(prompt, greedy({ maxTokens: 40 }));
  expect(new Set(plain).size).toBeLessThan(40);
  const strong = await idsAlone(
    prompt,
    turnOptions({ maxTokens: 40 }, { temperature: 0, frequencyPenalty: 100 }),
  );
  expect(new Set(strong).size).toBe(40);
  const repetition = await idsAlone(
    prompt,
    turnOptions({ maxTokens: 20 }, { temperature: 0, repetitionPenalty: 1e6 }),
  );
  for (const id of repetition) expect(prompt).not.toContain(id);
});
