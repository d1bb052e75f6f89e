import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  EngineAwayError,
  type GenerationSequence,
  type Turn,
  type TurnEnd,
  type TurnStep,
} from '../../src/engine/index.js';
import {
  ContextLengthError,
  InvalidInputError,
  OverloadedError,
  UnavailableError,
} from '../../src/errors.js';
import { eventually } from '../support/eventually.js';
import { fixture, readJson } from '../support/fixtures.js';
import { startEngine, tinyModel, turnOptions } from './support/tiny-models.js';

const { prompt, continuation } = readJson('forward', 'tiny-llama.json').decode as {
  prompt: number[];
  continuation: number[];
};

async function readTurn(turn: Turn): Promise<{ steps: TurnStep[]; ids: number[]; end: TurnEnd }> {
  const steps: TurnStep[] = [];
  for (;;) {
    const next = await turn.next();
    if (next.done) return { steps, ids: steps.map((step) => step.token.id), end: next.value };
    steps.push(next.value);
  }
}

const greedy = (changes = {}) => turnOptions({ maxTokens: 24, ...changes }, { temperature: 0 });

async function begin(sequence: GenerationSequence, ids = prompt, options = greedy()) {
  sequence.append(ids);
  return readTurn(sequence.generate(options));
}

/** Waits until `holds`, as answers of the worker arrive in their own time. */

test('one to N sequences through the worker', async () => {
  const engine = await startEngine();
  expect(engine.info).toMatchObject({
    precision: 'fp32',
    vocabSize: 512,
    maxSequenceTokens: 128,
    maxSequences: 4,
  });
  expect(engine.stats()).toEqual({ running: 0, queued: 0, queueLimit: 64, freeSlots: 4 });
  const sequences = await Promise.all([1, 2, 3].map((seed) => engine.open({ seed, adapter: null })));
  expect(engine.stats()).toMatchObject({ running: 3, freeSlots: 1 });
  for (const { ids, end, steps } of await Promise.all(sequences.map((sequence) => begin(sequence)))) {
    expect(ids).toEqual(continuation);
    expect(end).toMatchObject({ reason: 'max_tokens', stopString: null });
    expect(steps.map((step) => step.text).join('') + end.text).toBe(end.fullText);
  }
  expect(sequences.map((sequence) => sequence.length)).toEqual([41, 41, 41]);
  for (const sequence of sequences) sequence.close();
  sequences[0]?.close();
  expect(engine.stats()).toMatchObject({ running: 0, freeSlots: 4 });
});

/** Nice value of each thread of this process. */
function threadNiceness(): Map<string, number> {
  const niceness = (thread: string): number =>
    Number(readFileSync(`/proc/self/task/${thread}/stat`, 'utf8').split(') ').pop()?.split(' ')[16]);
  return new Map(readdirSync('/proc/self/task').map((thread) => [thread, niceness(thread)]));
}

if (process.platform === 'linux')
  test('its threads, those of onnxruntime too, yield to the thread that talks to clients', async () => {
    const [before, own] = [threadNiceness(), getPriority()];
    await startEngine({ threads: 3, niceness: 7 });
    const begun = [...threadNiceness()].filter(([thread]) => !before.has(thread));
    // The worker's own, and those that share its matrix products.
    expect(begun.filter(([, nice]) => nice === Math.max(own, 7)).length).toBeGreaterThanOrEqual(3);
    expect(getPriority()).toBe(own);
  });

test('turns grow one sequence: what was sampled stays, what is appended is read by the next turn', async () => {
  const engine = await startEngine();
  const sequence = await engine.open();
  const first = await begin(sequence, prompt, greedy({ maxTokens: 10 }));
  const second = await readTurn(sequence.generate(greedy({ maxTokens: 14 })));
  expect([...first.ids, ...second.ids]).toEqual(continuation);
  const observation = [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23];
  const third = await begin(sequence, observation, greedy({ maxTokens: 12 }));
  const whole = await engine.open();
  const again = await begin(whole, [...prompt, ...continuation, ...observation], greedy({ maxTokens: 12 }));
  expect(third.ids).toEqual(again.ids);
  expect(sequence.length).toBe(prompt.length + continuation.length + observation.length + 12);
});

test('a sequence says how much of its prompt had been read before, and the fingerprint what runs it', async () => {
  const engine = await startEngine();
  const first = await engine.open();
  await begin(first);
  const second = await engine.open();
  await begin(second, [...prompt, 7]);
  expect([first.cachedTokens, second.cachedTokens]).toEqual([0, prompt.length]);
  expect(engine.info.fingerprint).toMatch(/^fp_[0-9a-f]{16}$/);
  const q8 = await startEngine({ precision: 'q8' }, {}, await tinyModel('tiny-llama', 'q8'));
  expect(q8.info.fingerprint).not.toBe(engine.info.fingerprint);
});

describe('cancelling', () => {
  test('leaving the loop early cancels the turn; the sequence holds what was read and goes on from there', async () => {
    const engine = await startEngine();
    const other = await engine.open();
    const otherTurn = begin(other);
    const sequence = await engine.open();
    sequence.append(prompt);
    const seen: number[] = [];
    for await (const step of sequence.generate(greedy({ maxTokens: 100 }))) {
      seen.push(step.token.id);
      if (seen.length === 5) break;
    }
    expect(seen).toEqual(continuation.slice(0, 5));
    expect(sequence.length).toBe(prompt.length + 5);
    const { ids } = await readTurn(sequence.generate(greedy({ maxTokens: 10 })));
    expect(ids).toEqual(continuation.slice(5, 15));
    expect((await otherTurn).ids).toEqual(continuation);
  });

  test('a client that vanishes: the signal ends its turn and frees its slot for the next in line', async () => {
    const engine = await startEngine({ maxSequences: 1 });
    const controller = new AbortController();
    const sequence = await engine.open({ signal: controller.signal });
    sequence.append(prompt);
    const turn = sequence.generate(greedy({ maxTokens: 100 }));
    const first = await turn.next();
    expect(first.done).toBe(false);
    const next = engine.open();
    await eventually(() => engine.stats().queued === 1);
    const ending = readTurn(turn);
    controller.abort();
    expect((await ending).end.reason).toBe('cancelled');
    expect((await begin(await next)).ids).toEqual(continuation);
    expect(engine.stats()).toMatchObject({ running: 1, queued: 0 });
    await expect(sequence.generate(greedy()).next()).rejects.toMatchObject({ code: 'cancelled' });
  });

  test('a closed sequence ends a turn nobody is reading, and closing again does nothing', async () => {
    const engine = await startEngine();
    const sequence = await engine.open();
    sequence.append(prompt);
    const turn = sequence.generate(greedy());
    await turn.next();
    sequence.close();
    sequence.close();
    expect(await readTurn(turn)).toMatchObject({ ids: [], end: { reason: 'cancelled' } });
    expect(engine.stats().running).toBe(0);
    expect(() => sequence.append([1])).toThrow(/closed/);
  });

  test('a signal that fired before, and one that fires while waiting in line', async () => {
    const engine = await startEngine({ maxSequences: 1 });
    await expect(engine.open({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'cancelled' });
    await engine.open();
    const controller = new AbortController();
    const waiting = engine.open({ signal: controller.signal });
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'cancelled' });
    expect(engine.stats()).toMatchObject({ running: 1, queued: 0 });
  });
});

describe('limits', () => {
  test('all slots busy: a bounded line, then a refusal that says when to come again', async () => {
    const engine = await startEngine({ maxSequences: 2, queueLimit: 1 });
    const [first] = await Promise.all([engine.open(), engine.open()]);
    const waiting = engine.open();
    const refused = await engine.open().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(OverloadedError);
    expect((refused as OverloadedError).retryAfterMs).toBeGreaterThan(0);
    expect(engine.stats()).toEqual({ running: 2, queued: 1, queueLimit: 1, freeSlots: 0 });
    first?.close();
    expect((await begin(await waiting)).ids).toEqual(continuation);
  });

  test('a prompt that does not fit is refused with the numbers, before anything runs', async () => {
    const engine = await startEngine();
    const sequence = await engine.open({ maxLength: 20 });
    sequence.append(prompt);
    expect(() => sequence.append([1, 2, 3, 4])).toThrow(ContextLengthError);
    expect(() => sequence.append([1, 2, 3, 4])).toThrow(/17.*4.*20/);
    expect(sequence.length).toBe(17);
    const { end, ids } = await readTurn(sequence.generate(greedy()));
    expect([end.reason, ids.length]).toEqual(['context', 3]);
    expect((await engine.open({ maxLength: 10_000 })).maxLength).toBe(128);
  });

  test('settings that make no sense are refused when the turn is asked for', async () => {
    const engine = await startEngine();
    const sequence = await engine.open();
    const acts: Record<string, () => unknown> = {
      'a token outside of the vocabulary': () => sequence.append([1, 512]),
      'a fraction as token': () => sequence.append([1.5]),
      'no tokens to sample': () => sequence.generate(greedy({ maxTokens: 0 })),
      'an empty stop string': () => sequence.generate(greedy({ stopStrings: [''] })),
      'too many alternatives': () => sequence.generate(greedy({ topLogprobs: 21 })),
      'a stop token that does not exist': () => sequence.generate(greedy({ stopTokenIds: [512] })),
      'top-p of 0': () => sequence.generate(turnOptions({}, { topP: 0 })),
      'a NaN temperature': () => sequence.generate(turnOptions({}, { temperature: Number.NaN })),
      'a temperature too small to divide by': () =>
        sequence.generate(turnOptions({}, { temperature: 1e-310 })),
      'a repetition penalty too small to divide by': () =>
        sequence.generate(turnOptions({}, { repetitionPenalty: 1e-40 })),
      'a bias on a token that does not exist': () =>
        sequence.generate(turnOptions({}, { logitBias: { 512: 1 } })),
    };
    const accepted = Object.keys(acts).filter((name) => {
      try {
        acts[name]?.();
        return true;
      } catch (error) {
        return !(error instanceof InvalidInputError);
      }
    });
    expect(accepted).toEqual([]);
    expect(sequence.length).toBe(0);
  });

  test('seeds, lengths and slots that make no sense are refused without taking a slot', async () => {
    const engine = await startEngine();
    for (const options of [{ seed: 0.5 }, { maxLength: 0 }, { slot: 0 }])
      await expect(engine.open(options)).rejects.toBeInstanceOf(InvalidInputError);
    await expect(engine.open({ adapter: 'none' })).rejects.toMatchObject({ code: 'not_found' });
    expect(engine.stats().running).toBe(0);
  });

  test('two turns of one sequence at once, an append within a turn, and a turn without prompt are refused', async () => {
    const engine = await startEngine();
    const sequence = await engine.open();
    await expect(sequence.generate(greedy()).next()).rejects.toThrow(/append a prompt/);
    sequence.append(prompt);
    const turn = sequence.generate(greedy());
    await turn.next();
    await expect(sequence.generate(greedy()).next()).rejects.toThrow(/still running/);
    expect(() => sequence.append([1])).toThrow(/still running/);
    expect((await readTurn(turn)).ids).toEqual(continuation.slice(1));
  });
});

test('a reader who takes nothing holds up nobody, loses nothing, and the worker does not run ahead of it', async () => {
  const engine = await startEngine();
  const [slow, quick] = await Promise.all([engine.open({ seed: 5 }), engine.open({ seed: 5 })]);
  slow.append([3]);
  const slowTurn = slow.generate(turnOptions({ maxTokens: 110 }));
  const first = await slowTurn.next();
  const { ids } = await begin(quick, [3], turnOptions({ maxTokens: 110 }));
  expect(ids).toHaveLength(110);
  const { decodeRows } = await engine.profile();
  expect(decodeRows).toBeLessThanOrEqual(110 + 64);
  const rest = await readTurn(slowTurn);
  expect([first.done ? -1 : first.value.token.id, ...rest.ids]).toEqual(ids);
});

test('alternatives come with every token', async () => {
  const engine = await startEngine();
  const { steps } = await begin(await engine.open(), prompt, greedy({ topLogprobs: 3, maxTokens: 4 }));
  for (const { token } of steps) {
    expect(token.alternatives).toHaveLength(3);
    expect(token.alternatives?.[0]).toEqual({ id: token.id, logprob: token.logprob });
  }
});

describe('adapters', () => {
  const policy = fixture('lora', 'tiny-llama', 'policy');
  const critic = fixture('lora', 'tiny-llama', 'critic');

  test('publish, serve both, swap, drain', async () => {
    const engine = await startEngine({ maxAdapters: 2 });
    const base = await engine.open();
    expect(base.adapterVersion).toBe('base');
    const one = await engine.loadAdapter('a', policy);
    expect(one).toMatchObject({ name: 'a', rank: 4, leases: 0, path: policy });
    await engine.setLiveAdapter('a');
    const live = await engine.open();
    expect(live.adapterVersion).toBe(one.version);
    await expect(engine.loadAdapter('a', critic)).rejects.toBeInstanceOf(InvalidInputError);
    const two = await engine.loadAdapter('a', critic, { replace: true });
    const next = await engine.open();
    expect(next.adapterVersion).toBe(two.version);
    expect(engine.liveAdapter?.version).toBe(two.version);
    const results = await Promise.all([base, live, next].map((sequence) => begin(sequence)));
    expect(new Set(results.map(({ ids }) => ids.join())).size).toBe(3);
    expect(results[0]?.ids).toEqual(continuation);
    await expect(engine.loadAdapter('b', policy)).resolves.toMatchObject({ version: one.version });
    expect(engine.listAdapters().map(({ name, leases }) => [name, leases])).toEqual([
      ['a', 1],
      ['b', 1],
    ]);
    for (const sequence of [base, live, next]) sequence.close();
    await engine.unloadAdapter('b');
    await expect(engine.open({ adapter: 'b' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(engine.open({ adapter: one.version })).rejects.toMatchObject({ code: 'not_found' });
    expect((await begin(await engine.open({ adapter: two.version }))).ids).toEqual(results[2]?.ids);
  });

  test('a folder that is no adapter changes nothing', async () => {
    const engine = await startEngine({ maxAdapterRank: 2 });
    await expect(engine.loadAdapter('a', policy)).rejects.toThrow(/rank 4.*2/);
    await expect(engine.loadAdapter('a', fixture('lora'))).rejects.toMatchObject({ code: 'not_found' });
    expect(engine.listAdapters()).toEqual([]);
  });

  test('opens, loads and unloads of one name at once: the right version or an error, never the base model', async () => {
    const engine = await startEngine({ maxSequences: 8 });
    const { version, ids } = await (async () => {
      const { version } = await engine.loadAdapter('a', policy);
      const sequence = await engine.open({ adapter: 'a' });
      const { ids } = await begin(sequence, prompt, greedy({ maxTokens: 4 }));
      sequence.close();
      return { version, ids };
    })();
    let served = 0;
    await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        if (i % 4 === 0) await engine.loadAdapter('a', policy);
        else if (i % 4 === 1) await engine.unloadAdapter('a').catch(() => {});
        const sequence = await engine.open({ adapter: 'a' }).catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'not_found' });
          return null;
        });
        if (sequence === null) return;
        expect(sequence.adapterVersion).toBe(version);
        expect((await begin(sequence, prompt, greedy({ maxTokens: 4 }))).ids).toEqual(ids);
        sequence.close();
        served++;
      }),
    );
    expect(served).toBeGreaterThan(0);
  });
});

describe('a worker that dies', () => {
  const folder = mkdtempSync(join(tmpdir(), 'searchloop-worker-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** The engine's worker, with a thread that throws when a sequence with the seed 666 is opened. */
  function fragileEntry(): string {
    const entry = join(folder, 'fragile.mjs');
    const worker = pathToFileURL(join(__dirname, '..', '..', 'dist', 'engine', 'worker.js')).href;
    writeFileSync(
      entry,
      `import { parentPort } from 'node:worker_threads';
       import ${JSON.stringify(worker)};
       parentPort.on('message', ({ params }) => {
         if (Array.isArray(params) && params.some(({ seed }) => seed === 666)) throw new Error('out of luck');
       });`,
    );
    return entry;
  }

  test('every sequence fails, the worker comes back with its adapters, and new sequences run', async () => {
    const states: string[] = [];
    const engine = await startEngine(
      {},
      { workerEntry: fragileEntry(), backOffMs: 1, onState: (state) => states.push(state) },
    );
    const { version } = await engine.loadAdapter('a', fixture('lora', 'tiny-llama', 'policy'));
    await engine.setLiveAdapter('a');
    const before = await begin(await engine.open());
    const running = await engine.open();
    running.append(prompt);
    const turn = running.generate(greedy({ maxTokens: 100 }));
    await turn.next();
    const idle = await engine.open({ adapter: null });
    const reading = readTurn(turn);
    const fatal = await engine.open({ seed: 666 });
    await expect(reading).rejects.toBeInstanceOf(UnavailableError);
    await expect(engine.open()).rejects.toBeInstanceOf(EngineAwayError);
    expect(() => idle.append([1])).toThrow(/died.*out of luck/);
    for (const sequence of [running, idle, fatal]) sequence.close();
    expect(engine.stats()).toMatchObject({ running: 0, queued: 0 });
    await eventually(() => engine.state === 'ready');
    expect(states).toEqual(['restarting', 'ready']);
    const after = await engine.open();
    expect(after.adapterVersion).toBe(version);
    expect((await begin(after)).ids).toEqual(before.ids);
  });

  test('a listener that throws holds up neither the return nor what runs after it', async () => {
    const states: string[] = [];
    const warnings = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const engine = await startEngine(
      {},
      {
        workerEntry: fragileEntry(),
        backOffMs: 1,
        onState: (state) => {
          states.push(state);
          if (state !== 'closed') throw new Error(`${state} is no state`);
        },
      },
    );
    const fatal = await engine.open({ seed: 666 });
    await eventually(() => states.includes('ready'));
    fatal.close();
    expect((await begin(await engine.open())).ids).toEqual(continuation);
    expect(states).toEqual(['restarting', 'ready']);
    expect(warnings.mock.calls.map(([text]) => text)).toEqual(
      states.map((state) => expect.stringContaining(`${state} is no state`)),
    );
    warnings.mockRestore();
  });

  test('a live adapter that is gone by then is reported and refused, not replaced by the base model', async () => {
    const home = join(folder, 'adapter');
    cpSync(fixture('lora', 'tiny-llama', 'policy'), home, { recursive: true });
    const faults: string[] = [];
    const engine = await startEngine(
      {},
      { workerEntry: fragileEntry(), backOffMs: 1, onAdapterFault: ({ name }) => faults.push(name) },
    );
    const { version } = await engine.loadAdapter('a', home);
    await engine.setLiveAdapter('a');
    renameSync(home, `${home}-away`);
    const fatal = await engine.open({ seed: 666 });
    await eventually(() => faults.length > 0);
    fatal.close();
    expect(faults).toEqual(['a']);
    expect(engine.state).toBe('ready');
    expect(engine.liveAdapter).toMatchObject({ name: 'a', version, fault: expect.stringContaining(home) });
    await expect(engine.open()).rejects.toBeInstanceOf(UnavailableError);
    await expect(engine.open()).rejects.toThrow(/adapter "a"/);
    (await engine.open({ adapter: null })).close();
    await engine.loadAdapter('a', `${home}-away`);
    const after = await engine.open();
    expect(after.adapterVersion).toBe(version);
    expect((await begin(after)).ids).toHaveLength(24);
  });

  test('a graph that cannot be opened is one clear failure', async () => {
    const { graphs, tokenizer } = await tinyModel();
    const broken = { graphs: { ...graphs, stepFile: join(folder, 'missing.onnx') }, tokenizer };
    await expect(startEngine({}, {}, broken)).rejects.toThrow(/missing\.onnx/);
  });

  test('a closed engine fails what is open and opens nothing', async () => {
    const engine = await startEngine();
    const sequence = await engine.open();
    sequence.append(prompt);
    const reading = expect(readTurn(sequence.generate(greedy()))).rejects.toBeInstanceOf(UnavailableError);
    await engine.close();
    await reading;
    await expect(engine.open()).rejects.toBeInstanceOf(UnavailableError);
    await engine.close();
  });
});

test('lock-step: a named slot is waited for, and repeated rollouts give the same bits', async () => {
  const engine = await startEngine({ lockStep: true, maxSequences: 2 });
  const run = async () => {
    const sequences = await Promise.all([0, 1].map((slot) => engine.open({ slot, seed: slot })));
    const results = await Promise.all(
      sequences.map((sequence) => begin(sequence, prompt, turnOptions({ maxTokens: 12 }))),
    );
    for (const sequence of sequences) sequence.close();
    return results.map(({ steps }) => steps.map(({ token }) => token));
  };
  expect(await run()).toEqual(await run());
});
