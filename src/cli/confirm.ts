import { createInterface } from 'node:readline';
import { CancelledError } from '../errors.js';

export interface Terminal {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
}

/**
 * Asks a question that "y" or "yes" affirms; anything else, also the end of the input, denies it.
 * @throws {CancelledError} the signal fired
 */
export function confirm(
  question: string,
  signal: AbortSignal,
  { input, output }: Terminal = { input: process.stdin, output: process.stderr },
): Promise<boolean> {
  // Not as a terminal: that would keep Ctrl-C to itself.
  const lines = createInterface({ input, terminal: false });
  output.write(`${question} [y/N] `);
  return new Promise<boolean>((resolve, reject) => {
    const stop = (): void => reject(new CancelledError());
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    lines.once('line', (line) => resolve(/^\s*y(es)?\s*$/i.test(line)));
    lines.once('close', () => resolve(false));
  }).finally(() => lines.close());
}
