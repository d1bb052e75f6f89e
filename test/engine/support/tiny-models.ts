// Engines over the stored tiny models: the loop alone, stepped by the test, and the whole engine with its worker.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configSchema } from '../../../src/config/index.js';
import { AdapterStore } from '../../../src/engine/core/adapter-store.js';
import { calibrationSamples } from '../../../src/engine/core/cache-calibration.js';
import { EngineCore } from '../../../src/engine/core/engine-core.js';
import { readLaidOut } from '../../../src/engine/core/read-adapter.js';
import { openStepModel, type StepModel } from '../../../src/engine/core/step-model.js';
import type { SamplingParameters, TurnOptions } from '../../../src/engine/generator.js';
import { createEngine, type Engine, type EngineOptions, RAW_POLICY } from '../../../src/engine/index.js';
import type {
  Command,
  EndEvent,
  EngineEvents,
  EngineSettings,
  FailureEvent,
  StepEvent,
} from '../../../src/engine/messages.js';
import { buildDecoderGraphs } from '../../../src/model/decoder-graphs.js';
import {
  decoderWeights,
  describeDecoder,
  type EngineGraphs,
  type GraphPrecision,
} from '../../../src/model/index.js';
import { type OnnxRuntime, openRuntime } from '../../../src/runtime/index.js';
import { createTokenizer, type TokenizerSource } from '../../../src/tokenizer/index.js';
import { openWeights } from '../../../src/weights/index.js';
import { fixture, readJson } from '../../support/fixtures.js';

export interface TinyModel {
  readonly graphs: EngineGraphs;
  readonly tokenizer: TokenizerSource;
}

const built = new Map<string, Promise<TinyModel>>();
const folder = mkdtempSync(join(tmpdir(), 'searchloop-engine-'));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

export function tinyModel(name = 'tiny-llama', precision: GraphPrecision = 'fp32'): Promise<TinyModel> {
  const key = `${name}-${precision}`;
  const found = built.get(key) ?? buildTiny(name, precision, join(folder, key));
  built.set(key, found);
  return found;
}

async function buildTiny(name: string, precision: GraphPrecision, target: string): Promise<TinyModel> {
  const source = openWeights(fixture('models', name));
  const config = describeDecoder({
    configJson: readJson('models', name, 'config.json'),
    generationConfigJson: readJson('models', name, 'generation_config.json'),
    tensors: source.tensors,
  });
  const weights = decoderWeights(config, source);
  const graphs = await buildDecoderGraphs({
    weights,
    precision,
    folder: target,
    sourceDigest: name,
    wideSteps: true,
  });
  return {
    graphs,
    tokenizer: {
      tokenizerJson: readJson('models', name, 'tokenizer.json'),
      tokenizerConfig: readJson('models', name, 'tokenizer_config.json'),
    },
  };
}

const defaults = configSchema.parse({}).engine;

export const tinySettings = (changes: Partial<EngineSettings> = {}): EngineSettings => ({
  ...defaults,
  precision: 'fp32',
  threads: 1,
  maxSequences: 4,
  maxSequenceTokens: 128,
  prefillChunkTokens: 16,
  lockStep: false,
  spinning: false,
  ...changes,
});

const engines: { close(): unknown }[] = [];

afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
});

export async function startEngine(
  settings: Partial<EngineSettings> = {},
  options: Partial<EngineOptions> = {},
  model?: TinyModel,
): Promise<Engine> {
  const { graphs, tokenizer } = model ?? (await tinyModel());
  const engine = await createEngine({
    modelId: 'tiny',
    graphs,
    tokenizer,
    settings: tinySettings(settings),
    lockStep: settings.lockStep ?? false,
    spinning: false,
    ...options,
  });
  engines.push(engine);
  return engine;
}

export const turnOptions = (
  changes: Partial<TurnOptions> = {},
  sampling: Partial<SamplingParameters> = {},
): TurnOptions => ({
  sampling: { ...RAW_POLICY, ...sampling },
  maxTokens: 16,
  stopStrings: [],
  stopTokenIds: [],
  ignoreEos: true,
  ...changes,
});

/** What became of one sequence of a stepped core. */
export interface Heard {
  readonly steps: StepEvent[];
  readonly ids: number[];
  text: string;
  end: EndEvent | null;
  failure: FailureEvent | null;
}

export interface SteppedCore {
  readonly core: EngineCore;
  send(...commands: Command[]): void;
  /** One round of the loop. */
  tick(): Promise<boolean>;
  /** Rounds until nothing is left to run; at most `limit`. */
  settle(limit?: number): Promise<number>;
  heard(sequence: number): Heard;
  /** Rounds of the loop whose events held a step of this sequence. */
  readonly batches: EngineEvents[];
  readonly adapters: AdapterStore;
  readonly model: StepModel;
}

/** The engine's loop in this thread, one round at a time. */
export async function openCore(
  settings: Partial<EngineSettings> = {},
  model?: TinyModel,
  runtime?: OnnxRuntime,
): Promise<SteppedCore> {
  const { graphs, tokenizer } = model ?? (await tinyModel());
  const all = tinySettings(settings);
  const step = await openStepModel(runtime ?? (await openRuntime()), {
    graphs,
    slots: all.maxSequences,
    capacity: all.maxSequenceTokens,
    chunkTokens: all.prefillChunkTokens,
    threads: all.threads,
    spinning: false,
    samples: calibrationSamples(
      createTokenizer(tokenizer),
      graphs.config.eosTokenIds,
      all.prefillChunkTokens,
    ),
  });
  engines.push(step);
  const heard = new Map<number, Heard>();
  const of = (sequence: number): Heard => {
    const found = heard.get(sequence) ?? { steps: [], ids: [], text: '', end: null, failure: null };
    heard.set(sequence, found);
    return found;
  };
  const batches: EngineEvents[] = [];
  const adapters = new AdapterStore(graphs.config);
  const core = new EngineCore({
    model: step,
    tokenizer: createTokenizer(tokenizer),
    eosTokenIds: graphs.config.eosTokenIds,
    adapters,
    settings: all,
    send: (events) => {
      batches.push(events);
      for (const event of events.steps) {
        const item = of(event.sequence);
        item.steps.push(event);
        item.ids.push(event.id);
        item.text += event.text;
      }
      for (const event of events.ends) {
        of(event.sequence).end = event;
        of(event.sequence).text += event.text;
      }
      for (const event of events.failures) of(event.sequence).failure = event;
    },
  });
  return {
    core,
    adapters,
    model: step,
    batches,
    send: (...commands) => core.accept(commands),
    tick: () => core.tick(),
    async settle(limit = 1000) {
      let rounds = 0;
      while (await core.tick()) if (++rounds > limit) throw new Error(`still busy after ${limit} rounds`);
      return rounds;
    },
    heard: of,
  };
}

/** Reads a PEFT folder into a stepped core. @returns its version */
export async function loadAdapter(
  { adapters }: Pick<SteppedCore, 'adapters'>,
  path: string,
): Promise<string> {
  const adapter = readLaidOut(path, (await tinyModel()).graphs.config, 64);
  adapters.add(adapter);
  return adapter.version;
}

/** Commands that open a sequence, append a prompt and start a turn. */
export function ask(
  sequence: number,
  ids: readonly number[],
  options: TurnOptions,
  more: Partial<Extract<Command, { kind: 'open' }>> = {},
): Command[] {
  return [
    { kind: 'open', sequence, version: 'base', seed: sequence, maxLength: 128, slot: null, ...more },
    { kind: 'append', sequence, ids: Int32Array.from(ids) },
    { kind: 'generate', sequence, turn: 0, options },
  ];
}
