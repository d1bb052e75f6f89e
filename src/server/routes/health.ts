// GET /healthz: the process answers. GET /readyz: questions can be answered.

import type { RequestHandler } from 'express';
import type { Part, ServerContext } from '../context.js';

export function healthz(): RequestHandler {
  return (_req, res) => {
    res.json({ status: 'ok' });
  };
}

export function readyz(context: ServerContext): RequestHandler {
  return (_req, res) => {
    const parts = { model: context.parts.policy(), index: context.parts.index() };
    const reasons = Object.entries(parts).flatMap(([name, part]) => reasonOf(name, part));
    const live = parts.model.state === 'ready' ? parts.model.value.engine.liveAdapter : null;
    if (live !== null && live.fault !== null)
      reasons.push(`the live adapter "${live.name}" is not in the engine: ${live.fault}`);
    if (context.activity.stopping) reasons.push('the server is shutting down');
    if (reasons.length > 0) {
      res.status(503).set({ 'retry-after': '5', 'retry-after-ms': '5000' });
      res.json({ status: 'not ready', reasons });
      return;
    }
    const troubles = [
      ['the store', context.store?.health().trouble ?? null],
      ['the loop', context.loopTrouble()],
    ].flatMap(([name, trouble]) => (trouble === null ? [] : [`${name}: ${trouble}`]));
    const engine = parts.model.state === 'ready' ? parts.model.value.engine.stats() : null;
    // Questions are answered all the same; their records wait or are lost, or nothing is learned.
    if (troubles.length > 0) res.json({ status: 'degraded', reasons: troubles, engine });
    else res.json({ status: 'ready', engine });
  };
}

function reasonOf(name: string, part: Part<unknown>): string[] {
  return part.state === 'ready' ? [] : [`${name} is ${part.state}: ${part.reason}`];
}
