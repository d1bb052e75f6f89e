import { Command } from 'commander';
import type { Config } from '../config/index.js';
import { CancelledError } from '../errors.js';
import { createServer } from '../server/index.js';
import { createLogger } from '../telemetry/index.js';
import { contextOf } from './context.js';
import { wholeNumber } from './flag-values.js';
import type { Output } from './output.js';
import { ServedParts } from './served-parts.js';
import { keepRetention, openServerStore } from './store.js';

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

async function serve(config: Config, output: Output, signal: AbortSignal): Promise<void> {
  const logger = createLogger({ level: config.log.level });
  const stop = new AbortController();
  const end = (): void => stop.abort(new CancelledError());
  process.once('SIGTERM', end);
  signal.addEventListener('abort', end);

  const store = openServerStore(config, logger);
  const endRetention = store === null ? () => {} : keepRetention(store, config, logger);
  const parts = new ServedParts(config, store, logger);
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
