// POST /retrieve: Search-R1's protocol, so that its trainers can use our index.

import type { RequestHandler } from 'express';
import type { Passage, Retriever } from '../../retrieval/index.js';
import { requireIndex, type ServerContext } from '../context.js';
import { parseBody } from '../http/body.js';
import { untilSent } from '../http/client-gone.js';
import { sendPieces } from '../http/send-json.js';
import { jsonPieces } from '../json/pieces.js';
import { rowOf } from '../retrieve/answer.js';

/** Queries searched at once: a trainer's batch leaves room for a question between two of them. */
const SLICE = 128;
/** Passages that come back at once: reading them from the searching thread holds this one. */
const SLICE_PASSAGES = 256;
/** Characters of the answer made in one go. */
const PIECE = 64 * 1024;

export function retrieve(context: ServerContext): RequestHandler {
  return async (req, res) => {
    const body = await parseBody(req, 'retrieve', context.bodies);
    const work = context.activity.begin();
    const written = untilSent(res, work);
    try {
      const retriever = requireIndex(context.parts);
      const rows = await searchAll(retriever, body.queries, body.topk, work.signal);
      res.status(200).set('content-type', 'application/json; charset=utf-8');
      await sendPieces(res, answerPieces(rows, body.returnScores));
    } catch (error) {
      throw work.signal.aborted ? work.signal.reason : error;
    } finally {
      written();
    }
  };
}

async function searchAll(
  retriever: Retriever,
  queries: readonly string[],
  topk: number,
  signal: AbortSignal,
): Promise<Passage[][]> {
  const rows: Passage[][] = [];
  const slice = Math.max(1, Math.min(SLICE, Math.floor(SLICE_PASSAGES / topk)));
  for (let start = 0; start < queries.length; start += slice) {
    signal.throwIfAborted();
    rows.push(...(await retriever.search(queries.slice(start, start + slice), topk, { signal })));
  }
  return rows;
}

/** Row by row: the text of a whole batch would hold the thread while it is made. */
function* answerPieces(rows: readonly Passage[][], withScores: boolean): Generator<string, void, void> {
  let text = '{"result":[';
  for (const [index, row] of rows.entries()) {
    text += index === 0 ? '' : ',';
    for (const piece of jsonPieces(rowOf(row, withScores))) {
      text += piece;
      if (text.length < PIECE) continue;
      yield text;
      text = '';
    }
  }
  yield `${text}]}`;
}
