import { Command } from 'commander';
import type { Config } from '../config/index.js';
import { CancelledError } from '../errors.js';
import { createPriority, type OpenedLoop, type Priority } from '../loop/index.js';
import type { Retriever } from '../retrieval/index.js';
import { createServer, type Part, type Policy } from '../server/index.js';
import { createLogger, type Logger } from '../telemetry/index.js';
import type { TrajectoryStore } from '../trajectory/index.js';
import {
  openIndex,
  openRunner,
  type PolicyFiles,
  type PolicyModel,
  preparePolicyFiles,
  type StartOptions,
  startPolicyModel,
} from './application.js';
import { contextOf } from './context.js';
import { counted } from './counted.js';
import { openConfiguredLoop } from './loop-house.js';
import { type LoopStart, startLoop } from './loop-start.js';
import { wholeNumber } from './numbers.js';
import type { Output } from './output.js';
import { keepRetention, openServerStore, recordKeeping } from './store.js';

interface ServeOptions {
  readonly host?: string;
  readonly port?: number;
}

/** Listens at once; /readyz and requests say what is still loading. Ends on SIGINT or SIGTERM. */
export function serveCommand(): Command {
  return new Command('serve')
    .description('serve the OpenAI-compatible API; fetches models and builds the demo index where missing')
    .option('--host <address>', 'server.host')
    .option('-p, --port <number>', 'server.port', wholeNumber(0))
    .action(async (options: ServeOptions, self: Command) => {
      const flags = { 'server.host': options.host, 'server.port': options.port };
      const { config, output, signal } = contextOf(self, flags);
      await serve(config, output, signal);
    });
}

const LOADING = { state: 'loading', reason: 'starting' } as const;

async function serve(config: Config, output: Output, signal: AbortSignal): Promise<void> {
  const logger = createLogger({ level: config.log.level });
  const stop = new AbortController();
  const end = (): void => stop.abort(new CancelledError());
  process.once('SIGTERM', end);
  signal.addEventListener('abort', end);

  const store = openServerStore(config, logger);
  const endRetention = store === null ? () => {} : keepRetention(store, config, logger);
  const parts = createParts(config, store, logger);
  const { loop, loopTrouble } = parts;
  const server = createServer({ config, parts, logger, store: store ?? undefined, loop, loopTrouble });
  try {
    const { url } = await server.listen();
    const progress = output.progress();
    const start = { onProgress: progress.on, onNote: output.note, signal: stop.signal };
    try {
      await parts.load(start);
    } finally {
      progress.stop();
    }
    output.result(
      { url, model: config.model.policy, index: config.retrieval.index },
      readyText(url, config.retrieval.index),
    );
    await aborted(stop.signal);
    output.note('stopping: running answers may finish');
  } finally {
    await server.close();
    await parts.close();
    endRetention();
    await store?.close();
    process.off('SIGTERM', end);
  }
}

/** The parts of the server as they stand; `load` opens them, first the model, then the index. */
function createParts(config: Config, store: TrajectoryStore | null, logger: Logger) {
  let model: PolicyModel | null = null;
  let retriever: Retriever | null = null;
  let policy: Part<Policy> = LOADING;
  let index: Part<Retriever> = LOADING;
  let loop: LoopStart | null = null;
  let priority: Priority | null = null;
  const keeping = recordKeeping(store, config, logger);
  const readyPolicy = ({ engine, encoding }: PolicyModel, searched: Retriever): Part<Policy> => {
    // With a loop beside them, users' sequences send its own away.
    const generator = priority?.users ?? engine;
    const runner = openRunner(config, { engine: generator, encoding }, searched, keeping);
    return { state: 'ready', value: { runner, engine, tokenizer: encoding.tokenizer } };
  };
  const openModel = async (files: PolicyFiles): Promise<PolicyModel> => {
    const loaded = await startPolicyModel(config, files, {
      onEncodingFailure: (err) => logger.warn({ err }, 'no worker for long texts'),
      onAdapterFault: ({ name, error }) =>
        logger.error({ adapter: name, err: error }, 'the engine came back without an adapter'),
      onState: (state, error) => {
        if (error !== null) logger.error({ state, err: error }, 'engine worker failed');
        if (model !== null && state !== 'ready')
          policy = { state: state === 'failed' ? 'broken' : 'loading', reason: 'the engine restarts' };
        else if (model !== null && retriever !== null) policy = readyPolicy(model, retriever);
      },
    });
    model = loaded;
    if (config.loop.enabled) priority = createPriority(loaded.engine, config.loop);
    loaded.encoding.warm();
    const auditor = { modelDigest: loaded.engine.info.modelDigest, tokenizer: loaded.tokenizerSource };
    void store
      ?.useAuditor(auditor)
      .catch((err) => logger.warn({ err }, 'records are stored without an audit'));
    return loaded;
  };
  return {
    policy: () => policy,
    index: () => index,
    loop: () => loop?.loop() ?? null,
    loopTrouble: () => loop?.trouble() ?? null,
    async load(options: StartOptions): Promise<void> {
      const files = await preparePolicyFiles(config, options);
      // Both take seconds of one core.
      const [engine, searched] = await Promise.allSettled([openModel(files), openIndex(config, options)]);
      if (searched.status === 'fulfilled') retriever = searched.value;
      if (engine.status === 'rejected') throw engine.reason;
      if (searched.status === 'rejected') throw searched.reason;
      index = { state: 'ready', value: searched.value };
      // First the version that was published last, then the first question; but no answer waits for what may take for ever.
      if (store !== null && priority !== null) {
        const startsWith = engine.value.engine.liveAdapter;
        const house = { policy: engine.value, priority, retriever: searched.value, store, startsWith };
        loop = startLoop({
          open: (hooks) => openConfiguredLoop(config, house, hooks),
          onOpened: (opened) => warnOfFewQuestions(config, opened, logger),
          logger,
          signal: options.signal,
        });
        await loop.settled;
      }
      policy = readyPolicy(engine.value, searched.value);
    },
    async close(): Promise<void> {
      await loop?.close();
      await Promise.all([model?.close(), retriever?.close()]);
    },
  };
}

/** Labels of users' questions have not been read yet; they seldom come to so many. */
function warnOfFewQuestions(config: Config, { loop }: OpenedLoop, logger: Logger): void {
  const { questions_to_judge_by: there, questions_needed_to_judge: needed } = loop.status().labels;
  const { gateData, confirmEvery } = config.loop;
  if (there >= (confirmEvery > 0 ? 2 : 1) * needed) return;
  const data =
    gateData === null ? 'loop.gateData is not set' : `loop.gateData holds ${counted(there, 'question')}`;
  const lacks =
    there < needed
      ? `a verdict takes ${needed}: no candidate is published`
      : `publication ${confirmEvery} takes ${needed} fresh ones beside them: it waits`;
  logger.warn(
    { there, needed },
    `${data}, and ${lacks} before held-out questions, labelled by an admin or by two keys, make up for them`,
  );
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function readyText(url: string, index: string): string {
  const content = index === 'demo' ? 'Who designed the Sydney Opera House?' : 'YOUR QUESTION';
  const body = JSON.stringify({
    model: 'searchloop',
    messages: [{ role: 'user', content }],
    stream: true,
  });
  return [
    `searchloop answers on ${url}`,
    '',
    `  curl -N ${url}/v1/chat/completions -H 'content-type: application/json' -d '${body}'`,
    '',
    'Models: searchloop (think and search), searchloop:rag, :cot, :direct, :chat. Ctrl-C stops.',
  ].join('\n');
}
