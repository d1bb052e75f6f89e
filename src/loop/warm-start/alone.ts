import { basename, dirname } from 'node:path';
import { claim } from '../../weights/index.js';

/**
 * Does work that reads a file of trajectories and then writes to it; two at once would write each line twice.
 * @throws {CancelledError} the signal fired while another process did it
 */
export async function aloneOn<Result>(
  output: string,
  {
    onNote,
    signal,
  }: { readonly onNote?: ((line: string) => void) | undefined; readonly signal?: AbortSignal | undefined },
  work: () => Promise<Result>,
): Promise<Result> {
  const held = await claim({
    folder: dirname(output),
    key: basename(output),
    kind: 'file',
    onWait: () => onNote?.(`another process writes ${output}; waiting for it to end`),
    signal,
  });
  try {
    return await work();
  } finally {
    await held.release(true);
  }
}
