// Records and stores for the tests of the store.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTokenizer, type TokenizerSource } from '../../../src/tokenizer/index.js';
import {
  createTrajectoryBuilder,
  type FeedbackInput,
  NO_NOTES,
  openTrajectoryStore,
  type RecordNotes,
  type TrajectoryRecord,
  type TrajectoryStore,
} from '../../../src/trajectory/index.js';

export const TOKENIZER: TokenizerSource = {
  tokenizerJson: JSON.parse(
    readFileSync(join(__dirname, '../../fixtures/models/tiny-llama/tokenizer.json'), 'utf8'),
  ),
};
export const tokenizer = createTokenizer(TOKENIZER);
export const MODEL = 'model-digest';

export interface RecordWish {
  readonly question?: string;
  readonly answer?: string;
  readonly createdAt?: number;
  readonly version?: string;
  /** Words sampled beside the answer, to make a record bigger. */
  readonly words?: number;
  /** What its search ended with. */
  readonly searchError?: string;
}

/** A sound record of a search-r1 rollout with one search. */
export function makeRecord(id: string, wish: RecordWish = {}): TrajectoryRecord {
  const { question = 'capital of France?', answer = 'Paris', createdAt = 1_700_000_000_000 } = wish;
  const builder = createTrajectoryBuilder({ tokenizer, adapterVersion: wish.version ?? 'base' });
  const say = (text: string): void => {
    const ids = tokenizer.encodePlain(text);
    const logprobs = ids.map((_, at) => -Math.abs(Math.fround(Math.sin(at + 1))));
    builder.sampled({ ids, logprobs, samplingLogprobs: ids.map(() => 0) });
  };
  builder.prompt(tokenizer.encodePlain(`question: ${question}`));
  say(`<think>hm${' word'.repeat(wish.words ?? 0)}</think><search>France</search>`);
  const seen = tokenizer.encodePlain('\n\n<information>Doc 1(Title: France) Paris é 北</information>\n\n');
  const observation = builder.environment('search', seen);
  builder.search({
    query: 'France',
    passageIds: ['p1'],
    scores: [0.25],
    durationMs: 3,
    error: wish.searchError ?? null,
    duplicate: false,
    observation,
  });
  say(`<answer>${answer}</answer>`);
  return builder.build({
    id,
    createdAt,
    method: 'search-r1',
    promptTemplateDigest: 'prompt',
    modelDigest: MODEL,
    indexSnapshotId: 'snapshot',
    sampling: { temperature: 0, topP: 1 },
    seed: 7,
    groupId: null,
    question,
    answer,
    stop: 'answer',
    validActions: 2,
    invalidActions: 0,
    forced: false,
  });
}

export const notes = (changes: Partial<RecordNotes> = {}): RecordNotes => ({
  ...NO_NOTES,
  messages: [{ role: 'user', content: 'capital of France?' }],
  ...changes,
});

export const feedback = (trajectoryId: string, changes: Partial<FeedbackInput> = {}): FeedbackInput => ({
  trajectoryId,
  keyId: 'key-1',
  role: 'feedback',
  idempotencyKey: null,
  reward: null,
  rating: null,
  goldAnswers: null,
  preferredOver: null,
  comment: null,
  ...changes,
});

/** One store for the tests of a file, empty before each of them; handed out before the first. */
export function useStore(name: string, use: (store: TrajectoryStore) => void): void {
  let folder: string;
  let store: TrajectoryStore;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), `searchloop-${name}-`));
    store = openTrajectoryStore({
      storage: { kind: 'sqlite', path: join(folder, 'store.db') },
      retry: false,
    });
    await store.useAuditor({ modelDigest: MODEL, tokenizer: TOKENIZER });
    use(store);
  });
  afterEach(() => store.delete({}));
  afterAll(async () => {
    await store?.close();
    rmSync(folder, { recursive: true, force: true });
  });
}
