import type { RequestHandler } from 'express';
import type { Activity } from '../activity.js';

/** While the server stops, each connection ends with the answer it is waiting for. */
export function lastRequest(activity: Pick<Activity, 'stopping'>): RequestHandler {
  return (_req, res, next) => {
    if (activity.stopping) res.set('connection', 'close');
    next();
  };
}
