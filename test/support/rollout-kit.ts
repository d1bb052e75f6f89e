// A rollout runner over fakes, and helpers to read what it yields.

import { configSchema, type RolloutConfig } from '../../src/config/index.js';
import type { Retriever } from '../../src/retrieval/index.js';
import {
  createRolloutRunner,
  loadPrompts,
  type Rollout,
  type RolloutEvent,
  type RolloutRequest,
} from '../../src/rollout/index.js';
import type { PromptSet } from '../../src/rollout/prompt-file.js';
import { audit, type TrajectoryRecord } from '../../src/trajectory/index.js';
import { createMemoryRetriever } from './memory-retriever.js';
import { createPieceTokenizer, type PieceTokenizer } from './piece-tokenizer.js';
import {
  createScriptedGenerator,
  type Policy,
  type ScriptedGenerator,
  scriptOf,
} from './scripted-generator.js';

export const PASSAGES = [
  { id: 'p1', title: 'Lisbon', text: 'Lisbon is the capital of Portugal. It lies on the river Tagus.' },
  { id: 'p2', title: 'Porto', text: 'Porto is a harbour town on the river Douro.' },
  { id: 'p3', title: 'Madrid', text: 'Madrid is the capital of Spain.' },
  { id: 'p4', title: 'Oslo', text: 'Oslo is the capital of Norway.' },
];

const PROMPTS = loadPrompts({ prompt: 'search-r1' });

export type Done = Extract<RolloutEvent, { type: 'done' }>;

export interface Kit {
  readonly tokenizer: PieceTokenizer;
  readonly generator: ScriptedGenerator;
  readonly records: TrajectoryRecord[];
  request(overrides?: Partial<RolloutRequest>): RolloutRequest;
  run(overrides?: Partial<RolloutRequest>): Rollout;
  /** All events; audits the record. */
  events(overrides?: Partial<RolloutRequest>): Promise<RolloutEvent[]>;
}

export interface KitOptions {
  readonly turns?: readonly (string | readonly number[])[];
  readonly policy?: Policy;
  readonly tokenizer?: PieceTokenizer;
  readonly retriever?: Retriever | null;
  readonly config?: Partial<RolloutConfig>;
  readonly prompts?: Partial<PromptSet>;
  readonly maxSequenceTokens?: number;
  readonly beforeToken?: (sampled: number) => Promise<void> | void;
}

export const RAW_POLICY = {
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  frequencyPenalty: 0,
  presencePenalty: 0,
  repetitionPenalty: 1,
  logitBias: {},
};

export function createKit(options: KitOptions = {}): Kit {
  const tokenizer = options.tokenizer ?? createPieceTokenizer();
  const generator = createScriptedGenerator({
    tokenizer,
    policy: options.policy ?? scriptOf(tokenizer, options.turns ?? []),
    eosTokenIds: [tokenizer.endId],
    ...(options.maxSequenceTokens === undefined ? {} : { maxSequenceTokens: options.maxSequenceTokens }),
    ...(options.beforeToken === undefined ? {} : { beforeToken: options.beforeToken }),
  });
  const records: TrajectoryRecord[] = [];
  const config = { ...configSchema.parse({}).rollout, ...options.config };
  const runner = createRolloutRunner({
    generator,
    retriever:
      options.retriever === undefined ? createMemoryRetriever({ passages: PASSAGES }) : options.retriever,
    tokenizer,
    config,
    prompts: { ...PROMPTS, ...options.prompts },
    retryDelayMs: 1,
    onRecord: (record) => void records.push(record),
  });
  const request: Kit['request'] = (overrides) => ({
    method: 'search-r1',
    messages: [{ role: 'user', content: 'What is the capital of Portugal?' }],
    sampling: RAW_POLICY,
    ...overrides,
  });
  const run: Kit['run'] = (overrides) => runner.run(request(overrides));
  return {
    tokenizer,
    generator,
    records,
    request,
    run,
    async events(overrides) {
      const events = await collect(run(overrides));
      const { record, answer } = doneOf(events);
      expect(audit(record, tokenizer)).toEqual([]);
      expect(answerText(events)).toBe(answer);
      expect(record.tokenIds).toEqual(generator.sequences.at(-1)?.slice(0, record.tokenIds.length));
      expect(generator.openSlots).toBe(0);
      expect(records.at(-1)).toBe(record);
      return events;
    },
  };
}

export async function collect(rollout: Rollout): Promise<RolloutEvent[]> {
  const events: RolloutEvent[] = [];
  for await (const event of rollout) events.push(event);
  return events;
}

export const doneOf = (events: readonly RolloutEvent[]): Done => {
  expect(events.filter(({ type }) => type === 'done')).toHaveLength(1);
  return events.at(-1) as Done;
};

export const eventsOf = <T extends RolloutEvent['type']>(events: readonly RolloutEvent[], type: T) =>
  events.filter((event): event is Extract<RolloutEvent, { type: T }> => event.type === type);

export const answerText = (events: readonly RolloutEvent[]): string =>
  eventsOf(events, 'answer.delta')
    .map(({ text }) => text)
    .join('');

export const answerTokens = (events: readonly RolloutEvent[]) =>
  eventsOf(events, 'answer.delta').flatMap(({ tokens }) => tokens);

export const reasoningText = (events: readonly RolloutEvent[]): string =>
  eventsOf(events, 'reasoning.delta')
    .map(({ text }) => text)
    .join('');

/** Events with neighbouring deltas joined, so that the cut into deltas does not matter. */
export function joined(events: readonly RolloutEvent[]): unknown[] {
  const result: { type: string; text?: string }[] = [];
  for (const event of events) {
    if (event.type === 'done') continue;
    if (event.type === 'search.results') {
      result.push({ ...event, durationMs: 0 } as { type: string });
      continue;
    }
    const last = result.at(-1);
    if ('text' in event && last?.type === event.type) last.text += event.text;
    else result.push('text' in event ? { type: event.type, text: event.text } : { ...event });
  }
  return result;
}
