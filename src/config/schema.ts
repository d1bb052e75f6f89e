// The whole configuration as one strict tree. Every field has a default, a unit in its name where it has
// one, and a sentence. An unknown key is an error that names it. Rooms receive their own slice.

import { z } from 'zod';
import { loop } from './loop.js';
import { training } from './training.js';

const int = (min: number, max: number) => z.number().int().min(min).max(max);

const server = z.strictObject({
  host: z.string().min(1).default('127.0.0.1').describe('Address to listen on.'),
  port: int(0, 65535).default(8000).describe('Port to listen on; 0 picks a free one.'),
  apiKeys: z
    .array(z.string().min(1))
    .default([])
    .describe('Accepted bearer keys; none means that no key is asked for.'),
  bodyLimitBytes: int(1024, 1 << 30)
    .default(10 * 1024 * 1024)
    .describe('Largest request body.'),
  corsOrigins: z
    .array(z.string())
    .default(['*'])
    .describe('Origins of browser clients; * allows all, while there are no keys to ask only.'),
  streamCommentMs: int(100, 600_000)
    .default(15_000)
    .describe(
      'Pause after which a stream of events that waits sends a comment, so that nobody on the way ends it.',
    ),
  socketHeartbeatMs: int(100, 600_000)
    .default(30_000)
    .describe('Pause between WebSocket pings; two missed ones end a socket.'),
  streamOpenMs: int(0, 600_000)
    .default(30_000)
    .describe(
      'Longest wait for the first event before a stream is opened; a failure before it has its status.',
    ),
  reasoningFields: z
    .enum(['both', 'reasoning_content', 'reasoning'])
    .default('both')
    .describe('Names under which reasoning is sent; clients read one or the other.'),
  streamBufferBytes: int(1024, 1 << 30)
    .default(1024 * 1024)
    .describe('Unsent bytes at which a slow reader pauses its own rollout.'),
  streamBufferHardBytes: int(1024, 1 << 30)
    .default(8 * 1024 * 1024)
    .describe('Unsent bytes at which a slow WebSocket is closed.'),
  slowReaderTimeoutMs: int(1000, 3_600_000)
    .default(120_000)
    .describe('Longest wait for a reader that takes nothing.'),
  socketRequestLimit: int(1, 1024).default(8).describe('Requests in flight on one WebSocket.'),
  citationBaseUrl: z
    .string()
    .min(1)
    .default('urn:searchloop:passage:')
    .describe('Prefix of citation addresses; the passage id follows.'),
  shutdownGraceMs: int(0, 600_000).default(10_000).describe('Time that running answers get at shutdown.'),
  retrieveMaxQueries: int(1, 100_000)
    .default(4096)
    .describe('Most queries of one POST /retrieve; trainers send a whole batch at once.'),
  retrieveRoute: z.boolean().default(true).describe('Serve POST /retrieve (the Search-R1 protocol).'),
});

const model = z.strictObject({
  policy: z
    .string()
    .min(1)
    .default('smollm2-135m-instruct')
    .describe('Policy model: a manifest id or the name given to models add.'),
  embedder: z
    .string()
    .min(1)
    .default('all-minilm-l6-v2')
    .describe('Embedding model of the index builder and the query side.'),
  adapters: z
    .record(z.string(), z.string())
    .default({})
    .describe('Adapter name to PEFT folder, loaded at start.'),
  liveAdapter: z
    .string()
    .min(1)
    .nullable()
    .default('default')
    .describe(
      'Adapter that answers: one of model.adapters, null for the base model, or "default" for the one that comes with the policy.',
    ),
  liveMethods: z
    .array(z.enum(['search-r1', 'rag', 'cot', 'direct', 'chat']))
    .default(['search-r1'])
    .describe(
      'Methods that the live adapter answers; the others have the base model, unless a request names an adapter. An adapter does well only what it learned.',
    ),
});

const engine = z.strictObject({
  precision: z
    .enum(['q8', 'q4', 'fp32'])
    .default('q8')
    .describe('Weights: 8-bit blocks with int8 activations, 4-bit blocks, or float32.'),
  threads: int(0, 256).default(0).describe('Threads of the engine; 0 is the number of cores.'),
  niceness: int(0, 19)
    .default(4)
    .describe('Priority of these threads (Linux); above 0 the thread that talks to clients comes first.'),
  maxSequences: int(1, 256).default(16).describe('Sequences that hold a slot at once.'),
  maxSequenceTokens: int(64, 131_072).default(4096).describe('Most tokens in one sequence.'),
  prefillChunkTokens: int(16, 8192).default(256).describe('Prompt tokens read between two decode steps.'),
  queueLimit: int(0, 100_000)
    .default(64)
    .describe('Requests that may wait for a slot; beyond it they are refused.'),
  prefixCacheTokens: int(0, 10_000_000)
    .default(8192)
    .describe('Tokens of finished prompts kept for sharing.'),
  maxAdapters: int(1, 256).default(8).describe('Adapter versions resident at once.'),
  maxAdapterRank: int(1, 1024).default(64).describe('Largest rank of an adapter.'),
});

const retrieval = z.strictObject({
  kind: z.enum(['hnsw', 'bm25', 'hybrid', 'remote']).default('hnsw').describe('Search engine.'),
  index: z
    .string()
    .min(1)
    .default('demo')
    .describe('Name of a built index in the index folder, or a path, with a slash: ./mine.'),
  ef: int(1, 10_000).default(256).describe('HNSW search width; raised to k where k is larger.'),
  remoteUrl: z
    .url()
    .nullable()
    .default(null)
    .describe('Address of a Search-R1 /retrieve server, for kind remote.'),
  timeoutMs: int(1, 600_000).default(10_000).describe('Longest wait for one search.'),
  threads: int(0, 256)
    .default(1)
    .describe('Threads of the embedder while serving; 0 is the number of cores.'),
  queryCacheEntries: int(0, 1_000_000).default(4096).describe('Query embeddings kept.'),
});

const rollout = z.strictObject({
  actionBudget: int(1, 64).default(4).describe('Turns that may act before the last one (B).'),
  topK: int(1, 100).default(3).describe('Passages of a search.'),
  turnTokens: int(1, 32_768).default(500).describe('Most tokens sampled in one turn.'),
  observationTokens: int(16, 32_768).default(500).describe('Most tokens of one observation.'),
  passageTokens: int(8, 32_768)
    .nullable()
    .default(null)
    .describe('Most tokens of one passage as it is written, title included; null shows all of it.'),
  queryTokens: int(1, 4096).default(256).describe('Longest valid query.'),
  prompt: z.string().min(1).default('search-r1').describe('Prompt file in config/prompts, or a path.'),
  temperature: z.number().min(0).max(2).default(0).describe('Temperature of a request that names none.'),
  retrieverRetries: int(0, 10).default(2).describe('Further tries of a failed search.'),
});

const evaluation = z.strictObject({
  data: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('File of questions with gold answers (JSONL); null means that each command must name one.'),
  concurrency: int(1, 256).default(8).describe('Questions answered at once.'),
  resamples: int(100, 1_000_000).default(2000).describe('Resamples of a bootstrap interval.'),
  seed: int(0, 2 ** 31 - 1)
    .default(0)
    .describe('Seed of resampling, and of `evaluate --samples`.'),
});

const reward = z.strictObject({
  httpUrl: z
    .url()
    .nullable()
    .default(null)
    .describe('Program that rewards answers with gold answers: {"records"} in, {"rewards"} out.'),
  module: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('ES module whose default export rewards answers with gold answers; runs with all rights.'),
  judgeUrl: z
    .url()
    .nullable()
    .default(null)
    .describe('OpenAI-compatible endpoint, up to /v1, that judges answers nobody labelled.'),
  judgeModel: z.string().min(1).default('gpt-4o-mini').describe('Model of the judge.'),
  judgeKey: z.string().min(1).nullable().default(null).describe('Key of the judge.'),
  judgeVotes: int(1, 64).default(1).describe('Verdicts asked for each answer; their mean counts.'),
  majority: z
    .boolean()
    .default(false)
    .describe('Where nothing else is known, the most frequent answer of a group counts as right.'),
});

const store = z.strictObject({
  kind: z
    .enum(['sqlite', 'postgres', 'none'])
    .default('sqlite')
    .describe('Where answers, feedback and keys are kept; none keeps nothing.'),
  path: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('SQLite file; null is trajectories.db in the data folder.'),
  url: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Address of the database, for kind postgres: postgres://user:password@host:port/database.'),
  keepByDefault: z
    .boolean()
    .default(true)
    .describe('Keep the answers to requests that do not say; a request with store false is never kept.'),
  commitTimeoutMs: int(1, 60_000)
    .default(250)
    .describe('Longest wait of an answer for its record; beyond it the answer says stored: false.'),
  queueBytes: int(1 << 20, 1 << 34)
    .default(64 << 20)
    .describe('Records that may wait in memory while the disk is slow or full; more are not kept.'),
  retentionDays: int(0, 36_500).default(365).describe('Age at which records are deleted; 0 keeps them.'),
  retentionBytes: int(0, 2 ** 50)
    .default(20 * 2 ** 30)
    .describe(
      'Bytes of records beyond which some are deleted: rollouts of the loop first, then unlabelled answers, then labelled ones; 0 is no limit.',
    ),
});

const paths = z.strictObject({
  data: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Folder of what must not be lost: stored answers, versions and checkpoints of the loop; null is the user data folder.',
    ),
  home: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Folder for downloaded and imported models; null is the user cache folder.'),
  indexes: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Folder of built indexes; null is index/ beside package.json.'),
});

const log = z.strictObject({
  level: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('Least severe level that is logged.'),
});

export const configSchema = z
  .strictObject({
    server: server.prefault({}),
    model: model.prefault({}),
    engine: engine.prefault({}),
    retrieval: retrieval.prefault({}),
    rollout: rollout.prefault({}),
    training: training.prefault({}),
    evaluation: evaluation.prefault({}),
    reward: reward.prefault({}),
    store: store.prefault({}),
    loop: loop.prefault({}),
    paths: paths.prefault({}),
    log: log.prefault({}),
  })
  .superRefine((config, context) => {
    const fail = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
    if (config.retrieval.kind === 'remote' && config.retrieval.remoteUrl === null)
      fail(['retrieval', 'remoteUrl'], 'kind "remote" needs an address');
    if (config.server.streamBufferHardBytes < config.server.streamBufferBytes)
      fail(['server', 'streamBufferHardBytes'], 'must not be below streamBufferBytes');
    if (config.loop.enabled && config.store.kind === 'none')
      fail(['loop', 'enabled'], 'the loop learns from what is stored, and store.kind is "none"');
    if (config.loop.algorithm === 'ppo' && config.loop.mode === 'logged')
      fail(
        ['loop', 'mode'],
        'ppo needs the mode replay: a critic learns what the present policy will earn, and logged answers are of earlier ones',
      );
    if (config.loop.watchMaxPairs < config.loop.watchMinPairs)
      fail(['loop', 'watchMaxPairs'], 'must not be below watchMinPairs: there would never be a verdict');
    if (config.reward.httpUrl !== null && config.reward.module !== null)
      fail(['reward', 'module'], 'expected httpUrl or module, not both');
    if (config.store.kind === 'postgres' && config.store.url === null)
      fail(['store', 'url'], 'kind "postgres" needs an address');
    const { liveAdapter: live, adapters } = config.model;
    const taken = Object.keys(adapters).find((name) => name.startsWith('loop-'));
    if (config.loop.enabled && taken !== undefined)
      fail(['model', 'adapters'], `"${taken}": names that begin with loop- are those of the loop's versions`);
    if (live !== null && live !== 'default' && !Object.hasOwn(adapters, live))
      fail(['model', 'liveAdapter'], `"${live}" is not among model.adapters`);
  });

export type Config = z.infer<typeof configSchema>;
export type ServerConfig = Config['server'];
export type ModelConfig = Config['model'];
export type EngineConfig = Config['engine'];
export type RetrievalConfig = Config['retrieval'];
export type RolloutConfig = Config['rollout'];
export type EvaluationConfig = Config['evaluation'];
export type RewardConfig = Config['reward'];
export type StoreConfig = Config['store'];
export type LoopConfig = Config['loop'];
export type TrainingConfig = Config['training'];
