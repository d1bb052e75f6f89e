// GET /admin/loop and its versions, and POST /admin/loop/{pause,resume,step,rollback}: what the loop does, and the hand on it.

import { type RequestHandler, Router } from 'express';
import { z } from 'zod';
import { InvalidInputError, NotFoundError } from '../../errors.js';
import type { LoopControl, LoopStatus, VersionReceipt } from '../../loop/index.js';
import type { AtStop } from '../activity.js';
import type { ServerContext } from '../context.js';
import { identityOf, type KeyRing, requireKey, requireScope } from '../http/api-keys.js';
import { readBody } from '../http/body.js';
import { methodNotAllowed } from '../http/errors.js';
import { invalidField, RequestError } from '../openai/request-error.js';

const orders = z.strictObject({
  reason: z.string().max(500).optional(),
  version: z.string().max(128).optional(),
});
type Order = z.infer<typeof orders>;

const ORDER_BYTES = 16_384;

/** All of `/admin`; only keys with the scope admin come in. */
export function adminRoutes(context: ServerContext, keys: KeyRing): Router {
  const router = Router();
  router.use(requireKey(keys, context.settings), requireScope('admin'));
  router.get('/loop', (_req, res) => {
    res.json(loopOf(context).status());
  });
  router.all('/loop', methodNotAllowed('GET'));
  router.get('/loop/versions', async (_req, res) => {
    res.json(await loopOf(context).versions());
  });
  router.get('/loop/versions/:version', async (req, res) => {
    res.json(await receiptOf(loopOf(context), req.params.version));
  });
  router.all(['/loop/versions', '/loop/versions/:version'], methodNotAllowed('GET'));
  const order = (
    act: (loop: LoopControl, order: Order, by: string) => Promise<LoopStatus>,
    atStop: AtStop = 'finish',
  ): RequestHandler[] => [
    ...readBody(ORDER_BYTES),
    async (req, res) => {
      const loop = loopOf(context);
      const work = context.activity.begin(atStop);
      try {
        res.json(await unlessAborted(act(loop, orderOf(req.body), identityOf(res).keyId), work.signal));
      } catch (error) {
        if (error instanceof NotFoundError) throw invalidField('version', error.message);
        if (error instanceof InvalidInputError) throw invalidField(null, error.message);
        throw error;
      } finally {
        work.end();
      }
    },
  ];
  router.post('/loop/pause', ...order((loop, { reason }, by) => loop.pause(reason ?? `paused by ${by}`, by)));
  router.post('/loop/resume', ...order((loop) => loop.resume()));
  router.post('/loop/step', ...order((loop, _order, by) => loop.step(by), 'abort'));
  router.post(
    '/loop/rollback',
    ...order((loop, { reason, version }, by) => loop.rollback(reason ?? `rolled back by ${by}`, version, by)),
  );
  router.all(['/loop/pause', '/loop/resume', '/loop/step', '/loop/rollback'], methodNotAllowed('POST'));
  return router;
}

/** The order goes on; only its answer does not wait any longer. */
function unlessAborted<T>(ordered: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  return Promise.race([ordered, aborted]);
}

function loopOf({ loop, loopTrouble }: ServerContext): LoopControl {
  const found = loop();
  if (found === null)
    throw new RequestError(
      'route_not_found',
      `no loop runs here: ${loopTrouble() ?? 'loop.enabled is false'}`,
    );
  return found;
}

async function receiptOf(loop: LoopControl, version: string): Promise<VersionReceipt> {
  try {
    return await loop.receipt(version);
  } catch (error) {
    if (error instanceof NotFoundError)
      throw new RequestError('version_not_found', error.message, 'version', error);
    throw error;
  }
}

function orderOf(body: unknown): Order {
  const text = Buffer.isBuffer(body) ? body.toString('utf8').trim() : '';
  if (text === '') return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RequestError('invalid_json', 'expected a JSON body, or none');
  }
  const parsed = orders.safeParse(value);
  if (!parsed.success) throw invalidField(null, z.prettifyError(parsed.error));
  return parsed.data;
}
