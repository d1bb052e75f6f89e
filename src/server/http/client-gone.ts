import type { Response } from 'express';
import type { Work } from '../activity.js';

/**
 * Cancels work when its client leaves before the answer is out, also when it left while the body was parsed.
 * @returns a function that ends the watch
 */
export function cancelWhenGone(res: Response, work: Work): () => void {
  res.once('close', work.cancel);
  if (res.destroyed) work.cancel();
  return () => void res.off('close', work.cancel);
}
