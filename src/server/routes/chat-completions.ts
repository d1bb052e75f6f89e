// POST /v1/chat/completions, whole or streamed.

import type { RequestHandler, Response } from 'express';
import { type ChatRun, startChat } from '../answers/chat-run.js';
import { createChunker } from '../answers/chunks.js';
import { type ChatCompletion, createCompletion } from '../answers/completion.js';
import type { ServerContext } from '../context.js';
import { identityOf } from '../http/api-keys.js';
import { parseBody } from '../http/body.js';
import { untilSent } from '../http/client-gone.js';
import { noteError } from '../http/errors.js';
import { loggerOf } from '../http/request-id.js';
import { sendJson } from '../http/send-json.js';
import { createSse, type SseStream } from '../http/sse.js';
import { errorAnswer } from '../openai/error-body.js';

/** Names the policy version that answers, beside the body's own fields. */
const VERSION_HEADER = 'x-searchloop-version';

export function chatCompletions(context: ServerContext): RequestHandler {
  return async (req, res) => {
    const startedAt = performance.now();
    const body = await parseBody(req, 'chat', context.bodies);
    const work = context.activity.begin();
    const written = untilSent(res, work);
    try {
      const run = startChat(context, body, work.signal, identityOf(res));
      // A rollout keeps to the version that it was promised while that is loaded.
      res.set(VERSION_HEADER, run.adapterVersion);
      if (body.stream) {
        await streamAnswer(context, run, res, work.signal);
      } else {
        const completion = await gather(context, run);
        res.set(VERSION_HEADER, completion.usage.searchloop.model_version);
        res.set('openai-processing-ms', String(Math.round(performance.now() - startedAt)));
        await sendJson(res, completion);
      }
    } catch (error) {
      // The error of an aborted run says that it was aborted; the signal says why.
      throw work.signal.aborted ? work.signal.reason : error;
    } finally {
      written();
    }
  };
}

/** All events as one completion. */
async function gather(context: ServerContext, run: ChatRun): Promise<ChatCompletion> {
  const completion = createCompletion(run, context.settings);
  for await (const item of run.events) completion.add(item);
  return completion.result();
}

async function streamAnswer(
  context: ServerContext,
  run: ChatRun,
  res: Response,
  signal: AbortSignal,
): Promise<void> {
  const { settings } = context;
  const sse = createSse(res, {
    bufferBytes: settings.streamBufferBytes,
    streamCommentMs: settings.streamCommentMs,
    slowReaderTimeoutMs: settings.slowReaderTimeoutMs,
  });
  try {
    await pump(context, run, sse);
  } catch (error) {
    // Nothing sent yet: the failure still gets its own status.
    if (!sse.opened) throw error;
    await sendFailure(sse, res, signal.aborted ? signal.reason : error);
  }
}

async function pump(context: ServerContext, run: ChatRun, sse: SseStream): Promise<void> {
  const chunker = createChunker(run, context.settings);
  const opener = setTimeout(sse.open, context.settings.streamOpenMs);
  try {
    for await (const item of run.events) await sse.send(chunker.chunksOf(item));
  } finally {
    clearTimeout(opener);
  }
  await sse.send(chunker.closing());
  sse.end();
}

/** An error event in place of the finish reason, then the end marker. */
async function sendFailure(sse: SseStream, res: Response, error: unknown): Promise<void> {
  // The client left: nothing failed, and the request's own log line says that it is not complete.
  if (res.destroyed) return;
  const answer = errorAnswer(error);
  noteError(loggerOf(res), answer, error);
  try {
    await sse.send([answer.body]);
    sse.end();
  } catch {
    // The client left while it was told of the failure.
  }
}
