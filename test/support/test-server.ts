// The real server on a free port, over a scripted runner and small fakes.

import { loadConfig } from '../../src/config/index.js';
import type { AdapterInfo, EngineInfo } from '../../src/engine/index.js';
import type { Passage, Retriever } from '../../src/retrieval/index.js';
import type { ServerOptions, ServerParts } from '../../src/server/context.js';
import { createServer, type Policy } from '../../src/server/index.js';
import { createLogger } from '../../src/telemetry/index.js';
import { type Script, type ScriptedRunner, scriptedRunner } from './scripted-runner.js';

export const ENGINE_INFO: EngineInfo = {
  modelId: 'scripted',
  modelDigest: 'digest',
  precision: 'fp32',
  vocabSize: 256,
  maxSequenceTokens: 4096,
  eosTokenIds: [0],
  maxSequences: 16,
  fingerprint: 'scripted-1',
};

/** Tokens are bytes. */
export const byteTokenizer: Policy['tokenizer'] = {
  tokenBytes: (id) => Uint8Array.of(id),
  minimumTokens: (byteLength) => byteLength,
};

export function adapter(name: string, version: string): AdapterInfo {
  return { name, version, rank: 4, leases: 0, path: '/nowhere', isInternal: false, fault: null };
}

export function scriptedPolicy(runner: Policy['runner'], engine: Partial<Policy['engine']> = {}): Policy {
  const idle: Policy['engine'] = {
    info: ENGINE_INFO,
    listAdapters: () => [],
    liveAdapter: null,
    stats: () => ({ running: 0, queued: 0, queueLimit: 64, freeSlots: 16 }),
  };
  return {
    runner,
    tokenizer: byteTokenizer,
    // Getters stay getters.
    engine: Object.defineProperties(idle, Object.getOwnPropertyDescriptors(engine)),
  };
}

/** Finds, for each query, `k` passages that quote it. */
export function echoRetriever(search?: Retriever['search']): Retriever {
  const quote = (query: string, at: number): Passage => ({
    id: `p${at}`,
    title: `Title ${at}`,
    text: `about ${query}`,
    score: 1 - at / 10,
  });
  return {
    info: { kind: 'bm25', name: 'echo', passageCount: 10 },
    snapshotId: 'snapshot',
    search:
      search ??
      (async (queries, k) => queries.map((query) => Array.from({ length: k }, (_, at) => quote(query, at)))),
    close: async () => {},
  };
}

export interface TestServer {
  readonly url: string;
  readonly runner: ScriptedRunner;
  /** Lines of the log. */
  readonly logs: Record<string, unknown>[];
  close(): Promise<void>;
}

export interface TestServerOptions {
  readonly script?: Script;
  readonly server?: Readonly<Record<string, unknown>>;
  readonly engine?: Partial<Policy['engine']>;
  readonly parts?: Partial<ServerParts>;
  readonly retriever?: Retriever;
  readonly loop?: ServerOptions['loop'];
  readonly loopTrouble?: () => string | null;
  readonly store?: ServerOptions['store'];
}

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const runner = scriptedRunner(options.script ?? (() => [{ answer: 'Paris' }]));
  const policy = scriptedPolicy(runner, options.engine);
  const retriever = options.retriever ?? echoRetriever();
  const settings = { port: 0, shutdownGraceMs: 0, ...options.server };
  const flags = Object.fromEntries(Object.entries(settings).map(([key, value]) => [`server.${key}`, value]));
  const logs: Record<string, unknown>[] = [];
  const server = createServer({
    config: loadConfig({ env: {}, flags }),
    parts: {
      policy: () => ({ state: 'ready', value: policy }),
      index: () => ({ state: 'ready', value: retriever }),
      ...options.parts,
    },
    loop: options.loop,
    loopTrouble: options.loopTrouble,
    store: options.store,
    logger: createLogger({ level: 'info', destination: { write: (line) => logs.push(JSON.parse(line)) } }),
  });
  const { url } = await server.listen();
  return { url, runner, logs, close: () => server.close() };
}

/** POSTs a value, or text as it is, as JSON. */
export function post(url: string, body: unknown, init: RequestInit = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    ...init,
    headers: { 'content-type': 'application/json', ...(init.headers as Record<string, string>) },
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  });
}

export const QUESTION = { model: 'searchloop', messages: [{ role: 'user', content: 'capital of France?' }] };

/** The `data:` payloads of an event stream's text. */
export function sseData(text: string): string[] {
  return text
    .split('\n\n')
    .filter((block) => block.startsWith('data: '))
    .map((block) => block.slice('data: '.length));
}
