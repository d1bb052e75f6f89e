// A PEFT adapter made elsewhere, with its greedy transcripts: prompt, sampled tokens and log-probabilities are
// reproduced in fp32 by the real engine and the real loop. Observations are the stored ones. Where the margin
// to the runner-up is tiny another choice is no fault, and the rest of that transcript is not compared.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { configSchema, homeFolder, loadConfig } from '../../src/config/index.js';
import { createEngine, type Engine, RAW_POLICY } from '../../src/engine/index.js';
import { ensureModel, preparePrecision } from '../../src/model/index.js';
import type { Retriever } from '../../src/retrieval/index.js';
import { createRolloutRunner, loadPrompts, type RolloutRunner } from '../../src/rollout/index.js';
import { parsePrompt } from '../../src/rollout/prompt-file.js';
import { createTokenizer, type Tokenizer } from '../../src/tokenizer/index.js';
import { audit, type TrajectoryRecord } from '../../src/trajectory/index.js';
import { collect, doneOf } from '../support/rollout-kit.js';

const NEAR_TIE = 0.01;
const LOGPROB_TOLERANCE = 5e-3;
const PREFIX = '\n\n<information>';
const SUFFIX = '</information>\n\n';

interface StoredTurn {
  readonly sampledIds: readonly number[];
  readonly logprobs: readonly number[];
  readonly margins: readonly number[];
  readonly query?: string;
  readonly observation?: string;
  readonly observationIds?: readonly number[];
}

interface Transcript {
  readonly id: string;
  readonly question: string;
  readonly answer: string | null;
  readonly promptIds: readonly number[];
  readonly turns: readonly StoredTurn[];
}

interface Stored {
  readonly prompt: { readonly before: string };
  readonly transcripts: readonly Transcript[];
}

const folder = process.env.ORACLES;
if (folder === undefined)
  throw new Error('set ORACLES to the folder of reference values, which holds search-adapter/');
const file = (name: string): string => join(folder, 'search-adapter', name);
const stored = JSON.parse(readFileSync(file('transcripts.json'), 'utf8')) as Stored;

/** Gives each question's stored passages back as one text, so that the observation is the stored one. */
function storedRetriever(transcript: Transcript): Retriever {
  const body = new Map(
    transcript.turns.flatMap(({ query, observation }) =>
      query === undefined || observation === undefined
        ? []
        : [[query, observation.slice(PREFIX.length, observation.length - SUFFIX.length)] as const],
    ),
  );
  return {
    info: { kind: 'bm25', name: 'stored', passageCount: body.size },
    snapshotId: 'stored',
    search: async (queries) =>
      queries.map((query) => {
        const text = body.get(query);
        if (text === undefined) throw new Error(`the transcript has no search for "${query}"`);
        return [{ id: query, title: '', text, score: 1 }];
      }),
    close: async () => {},
  };
}

function runnerFor(transcript: Transcript, engine: Engine, tokenizer: Tokenizer): RolloutRunner {
  const config = configSchema.parse({ rollout: { observationTokens: 2000, retrieverRetries: 0 } }).rollout;
  const defaults = loadPrompts(config);
  const instruction = `${stored.prompt.before.split('<|im_start|>user\n')[1]}{question}`;
  const yaml = JSON.stringify({
    method: 'search-r1',
    instruction,
    observation: { ...defaults.searchR1.observation, prefix: PREFIX, passage: '{text}', suffix: SUFFIX },
  });
  return createRolloutRunner({
    generator: engine,
    retriever: storedRetriever(transcript),
    tokenizer,
    config,
    prompts: { ...defaults, searchR1: parsePrompt('search-r1', yaml, 'search-adapter') },
  });
}

interface Comparison {
  readonly tokens: number;
  readonly nearTie: boolean;
  readonly worstLogprob: number;
}

/** Walks through the stored turns; throws at the first token that differs without a near tie before it. */
function compare(record: TrajectoryRecord, transcript: Transcript): Comparison {
  let at = transcript.promptIds.length;
  let tokens = 0;
  let worstLogprob = 0;
  expect(record.tokenIds.slice(0, at)).toEqual(transcript.promptIds);
  for (const [turn, { sampledIds, logprobs, margins, observationIds }] of transcript.turns.entries()) {
    for (const [i, id] of sampledIds.entries()) {
      const ours = record.tokenIds[at];
      if (ours !== id && (margins[i] as number) < NEAR_TIE) return { tokens, nearTie: true, worstLogprob };
      if (ours !== id)
        throw new Error(
          `${transcript.id}, turn ${turn}, token ${i}: expected ${id}, got ${ours}; margin ${margins[i]}`,
        );
      const difference = Math.abs((record.logprobs[at] as number) - (logprobs[i] as number));
      worstLogprob = Math.max(worstLogprob, difference);
      at += 1;
      tokens += 1;
    }
    if (observationIds === undefined) continue;
    expect(record.tokenIds.slice(at, at + observationIds.length)).toEqual(observationIds);
    at += observationIds.length;
  }
  return { tokens, nearTie: false, worstLogprob };
}

let engine: Engine;
let tokenizer: Tokenizer;

beforeAll(async () => {
  const config = loadConfig();
  const home = homeFolder(config);
  const model = await ensureModel('smollm2-135m-instruct', home);
  const source = await model.readTokenizer();
  tokenizer = createTokenizer(source);
  engine = await createEngine({
    modelId: model.record.id,
    graphs: await preparePrecision(home, model, 'fp32'),
    tokenizer: source,
    settings: { ...config.engine, precision: 'fp32', maxSequences: 4, maxSequenceTokens: 2048 },
  });
  await engine.loadAdapter('search-adapter', file('adapter'));
});

afterAll(() => engine?.close());

test('the transcripts come out token for token', async () => {
  const results = await Promise.all(
    stored.transcripts.map(async (transcript) => {
      const sampled = transcript.turns.reduce((sum, { sampledIds }) => sum + sampledIds.length, 0);
      const events = await collect(
        runnerFor(transcript, engine, tokenizer).run({
          method: 'search-r1',
          messages: [{ role: 'user', content: transcript.question }],
          sampling: { ...RAW_POLICY, temperature: 0 },
          maxTokens: sampled,
          adapter: 'search-adapter',
        }),
      );
      const { record, answer } = doneOf(events);
      expect(audit(record, tokenizer)).toEqual([]);
      const result = compare(record, transcript);
      if (!result.nearTie && transcript.answer !== null) expect(answer).toBe(transcript.answer);
      return result;
    }),
  );
  const tokens = results.reduce((sum, result) => sum + result.tokens, 0);
  const ties = results.filter((result) => result.nearTie).length;
  const worst = Math.max(...results.map((result) => result.worstLogprob));
  console.log(
    `${results.length} transcripts, ${tokens} sampled tokens equal, ${ties} left at a near tie, log-probabilities within ${worst.toExponential(1)}`,
  );
  expect(worst).toBeLessThan(LOGPROB_TOLERANCE);
});
