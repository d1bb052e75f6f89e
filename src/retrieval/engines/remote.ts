import { z } from 'zod';
import { RetrievalError } from '../../errors.js';
import { sha256Hex } from '../../util/digest.js';
import { NoAnswerError, postJson } from '../../util/http.js';
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
  { timeoutMs, maxAnswerBytes: maxBytes = DEFAULT_MAX_ANSWER_BYTES }: RemoteOptions,
  signal: AbortSignal | undefined,
): Promise<Passage[][]> {
  const body = { queries, topk: k, return_scores: true };
  const { ok, status, text } = await postJson(url, body, { timeoutMs, maxBytes, signal }).catch((cause) => {
    if (!(cause instanceof NoAnswerError)) throw cause;
    throw new RetrievalError(`${url.href}: ${cause.message}`, { cause });
  });
  if (!ok) throw new RetrievalError(`${url.href}: answered ${status}`);
  return parseAnswer(text, queries.length, url.href);
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
