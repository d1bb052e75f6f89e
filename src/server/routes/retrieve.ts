// POST /retrieve: Search-R1's protocol, so that its trainers can use our index.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { RequestHandler, Response } from 'express';
import type { Passage, Retriever } from '../../retrieval/index.js';
import { requireIndex, type ServerContext } from '../context.js';
import { parseBody } from '../http/body.js';
import { cancelWhenGone } from '../http/client-gone.js';
import { drained } from '../http/sse.js';
import { rowOf } from '../retrieve/answer.js';

/** Queries searched at once: a trainer's batch leaves room for a question between two of them. */
const SLICE = 128;
/** Characters of the answer made in one go. */
const PIECE = 64 * 1024;

export function retrieve(context: ServerContext): RequestHandler {
  return async (req, res) => {
    const body = await parseBody(req, 'retrieve', context.bodies);
    const work = context.activity.begin();
    const unwatch = cancelWhenGone(res, work);
    try {
      const retriever = requireIndex(context.parts);
      const rows = await searchAll(retriever, body.queries, body.topk, work.signal);
      await sendRows(res, rows, body.returnScores);
    } catch (error) {
      throw work.signal.aborted ? work.signal.reason : error;
    } finally {
      unwatch();
      work.end();
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
  for (let start = 0; start < queries.length; start += SLICE) {
    signal.throwIfAborted();
    rows.push(...(await retriever.search(queries.slice(start, start + SLICE), topk, { signal })));
  }
  return rows;
}

/** Piece by piece: the text of a whole batch would hold the thread while it is made. */
async function sendRows(res: Response, rows: readonly Passage[][], withScores: boolean): Promise<void> {
  res.status(200).set('content-type', 'application/json; charset=utf-8');
  let text = '{"result":[';
  for (const [index, row] of rows.entries()) {
    text += `${index === 0 ? '' : ','}${JSON.stringify(rowOf(row, withScores))}`;
    if (text.length < PIECE) continue;
    if (!res.write(text)) await drained(res);
    text = '';
    await nextTurn();
  }
  res.end(`${text}]}`);
}
