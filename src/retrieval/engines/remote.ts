import { z } from 'zod';
import { CancelledError, RetrievalError } from '../../errors.js';
import { sha256Hex } from '../../util/digest.js';
import type { Passage, Retriever } from '../retriever.js';
import { splitContents } from '../search-r1-document.js';

export interface RemoteOptions {
  /** Address of the server; `/retrieve` is added when it names no path. */
  readonly url: string;
  readonly timeoutMs: number;
  readonly maxAnswerBytes?: number;
}

const DEFAULT_MAX_ANSWER_BYTES = 64 * 1024 * 1024;

const id = z.union([z.string(), z.number()]).transform(String);
const documentSchema = z.union([
  z.object({ id: id.optional(), contents: z.string() }).transform(({ id, contents }) => ({
    id,
    ...splitContents(contents),
  })),
  z.object({ id: id.optional(), title: z.string().default(''), text: z.string() }),
]);
const hitSchema = z.union([
  z.object({ document: documentSchema, score: z.number() }),
  // Servers that ignore `return_scores` send the documents alone.
  documentSchema.transform((document) => ({ document, score: null })),
]);
const answerSchema = z.object({ result: z.array(z.array(hitSchema)) });

/** Client of a search engine that speaks Search-R1's `/retrieve`. Its content is not ours: the snapshot is its address. */
export function createRemoteRetriever(options: RemoteOptions): Retriever {
  const url = new URL(options.url);
  if (url.pathname === '/') url.pathname = '/retrieve';
  const name = url.href;
  return {
    info: { kind: 'remote', name, passageCount: null },
    snapshotId: `remote:${name}`,
    async search(queries, k, { signal } = {}) {
      const asked = queries
        .map((query, place) => ({ query: query.trim(), place }))
        .filter(({ query }) => query !== '');
      const passages: Passage[][] = queries.map(() => []);
      if (asked.length === 0) return passages;
      const lists = await post(
        url,
        asked.map(({ query }) => query),
        k,
        options,
        signal,
      );
      asked.forEach(({ place }, i) => {
        passages[place] = (lists[i] as Passage[]).slice(0, k);
      });
      return passages;
    },
    async close() {},
  };
}

async function post(
  url: URL,
  queries: readonly string[],
  k: number,
  options: RemoteOptions,
  signal: AbortSignal | undefined,
): Promise<Passage[][]> {
  const timeout = AbortSignal.timeout(options.timeoutMs);
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ queries, topk: k, return_scores: true }),
      redirect: 'error',
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    const text = await readText(response, options.maxAnswerBytes ?? DEFAULT_MAX_ANSWER_BYTES);
    if (!response.ok) throw new RetrievalError(`${url.href}: answered ${response.status}`);
    return parseAnswer(text, queries.length, url.href);
  } catch (error) {
    if (signal?.aborted) throw new CancelledError();
    if (error instanceof RetrievalError) throw error;
    if (timeout.aborted)
      throw new RetrievalError(`${url.href}: no answer within ${options.timeoutMs} ms`, { cause: error });
    const { message, cause } = error as Error & { cause?: { message?: string } };
    const reason = cause?.message === undefined ? message : `${message}: ${cause.message}`;
    throw new RetrievalError(`${url.href}: ${reason}`, { cause: error });
  }
}

async function readText(response: Response, limit: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += (chunk as Uint8Array).length;
    if (bytes > limit) throw new RetrievalError(`${response.url}: the answer has more than ${limit} bytes`);
    text += decoder.decode(chunk as Uint8Array, { stream: true });
  }
  return text + decoder.decode();
}

function parseAnswer(text: string, queryCount: number, where: string): Passage[][] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new RetrievalError(`${where}: expected JSON, the answer is none`, { cause });
  }
  const parsed = answerSchema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new RetrievalError(
      `${where}: expected {"result":[[{"document":{"id","contents"},"score"}]]}; ${issue?.path.join('.')}: ${issue?.message}`,
    );
  }
  const { result } = parsed.data;
  if (result.length !== queryCount)
    throw new RetrievalError(`${where}: expected results for ${queryCount} queries, came ${result.length}`);
  return result.map((hits) =>
    hits.map(({ document, score }, rank) => ({
      id: document.id ?? sha256Hex(document.text).slice(0, 16),
      title: document.title,
      text: document.text,
      // Without scores the order is all there is.
      score: score ?? 1 / (rank + 1),
    })),
  );
}
