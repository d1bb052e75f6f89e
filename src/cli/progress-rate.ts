import type { OnProgress, Progress } from '../util/progress.js';
import type { CliContext } from './context.js';

/** Shows the progress of some work, with its rate, until it ends or fails. */
export async function withProgress<Result>(
  context: CliContext,
  work: (onProgress: OnProgress) => Promise<Result>,
): Promise<Result> {
  const shown = context.output.progress();
  try {
    return await work(withRate(shown.on));
  } finally {
    shown.stop();
  }
}

/** Adds the rate since the stage began to the unit. */
function withRate(on: OnProgress): OnProgress {
  let first: Progress | null = null;
  let since = 0;
  return (progress) => {
    if (first === null || first.stage !== progress.stage) {
      first = progress;
      since = performance.now();
    }
    const seconds = (performance.now() - since) / 1000;
    const rate = seconds > 0.5 ? ` at ${Math.round((progress.done - first.done) / seconds)}/s` : '';
    on({ ...progress, unit: `${progress.unit}${rate}` });
  };
}
