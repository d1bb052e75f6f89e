import type { IncomingMessage } from 'node:http';

/** Time for the rest of a refused body. */
const LINGER_MS = 1000;

/**
 * Reads the rest of a body for nothing, for a while, also when its sender never comes to the end of it: many clients read
 * no answer before they have sent all, and a connection that is closed over unread bytes takes its answer with it.
 */
export async function letGo(req: IncomingMessage): Promise<void> {
  if (req.complete || req.destroyed) return;
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve) => {
    req.once('end', resolve).once('close', resolve);
    timer = setTimeout(resolve, LINGER_MS);
    req.resume();
  });
  clearTimeout(timer);
}
