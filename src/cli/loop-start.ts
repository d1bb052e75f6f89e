// The loop of a server, opened beside it: a store that is away or a folder that another process holds costs no answer, and
// is waited for as long as it takes.

import { setTimeout as sleep } from 'node:timers/promises';
import { isLasting, type LoopControl, type LoopOptions, type OpenedLoop } from '../loop/index.js';
import type { Logger } from '../telemetry/index.js';

export type LoopHooks = Pick<LoopOptions, 'onNote' | 'onFailure' | 'onWait' | 'signal'>;

export interface LoopStartOptions {
  readonly open: (hooks: LoopHooks) => Promise<OpenedLoop>;
  readonly onOpened: (opened: OpenedLoop) => void;
  readonly logger: Logger;
  readonly signal?: AbortSignal | undefined;
  /** Pause before it is tried again. */
  readonly retryMs?: number;
  /** What is not open by then opens while questions are answered. */
  readonly patienceMs?: number;
}

export interface LoopStart {
  /** Null while it does not run. */
  loop(): LoopControl | null;
  /** Why it does not run; null: it runs. */
  trouble(): string | null;
  /** Resolves when the version that was published last is live, or when it is not known how long that takes. */
  readonly settled: Promise<void>;
  close(): Promise<void>;
}

const endOf = (opened: OpenedLoop): string | null => {
  const end = opened.ended();
  return end === null ? null : `it has ended, as another process has it now: ${end.message}`;
};

const RETRY_MS = 5_000;
const PATIENCE_MS = 30_000;
const CLOSE_MS = 10_000;

export function startLoop(options: LoopStartOptions): LoopStart {
  const { logger, retryMs = RETRY_MS, patienceMs = PATIENCE_MS } = options;
  const closing = new AbortController();
  const signal = AbortSignal.any([closing.signal, ...(options.signal ? [options.signal] : [])]);
  let opened: OpenedLoop | null = null;
  let trouble: string | null = 'it is starting';
  let settle = (): void => {};
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
    setTimeout(resolve, patienceMs).unref();
  });
  const waits = (reason: string): void => {
    trouble = `it has not started: ${reason}`;
    settle();
  };
  const hooks: LoopHooks = {
    onNote: (line, details) => logger.info({ ...details }, `loop: ${line}`),
    onFailure: (err, doing) => logger.error({ err }, `${doing} failed`),
    onWait: waits,
    signal,
  };

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        opened = await options.open(hooks);
        trouble = null;
        options.onOpened(opened);
        opened.loop.runInBackground();
        settle();
        if (!(await untilItReturns(opened))) return;
        opened = null;
        continue;
      } catch (err) {
        if (signal.aborted) return;
        const { message } = err as Error;
        const next = isLasting(err) ? '' : `; it is tried again every ${retryMs / 1000} s`;
        if (trouble !== `it has not started: ${message}`)
          logger.error({ err }, `the loop cannot start; answers come from what is configured${next}`);
        waits(message);
        if (isLasting(err)) return;
      }
      await rest();
    }
  }

  const rest = (): Promise<void> => sleep(retryMs, undefined, { signal, ref: false }).catch(() => {});

  /** Where another process has the folder now, this one waits for its end like any other. @returns false: it stays away */
  async function untilItReturns(over: OpenedLoop): Promise<boolean> {
    while (over.ended() === null && !signal.aborted) await rest();
    if (signal.aborted || !(await over.mayReturn())) return false;
    await over.close();
    trouble = endOf(over);
    return true;
  }

  const running = run().finally(settle);
  return {
    loop: () => (opened === null || opened.ended() !== null ? null : opened.loop),
    trouble: () => (opened === null ? trouble : (endOf(opened) ?? opened.loop.trouble())),
    settled,
    async close() {
      closing.abort();
      // A write that waits for its store ends when that is closed, which comes later.
      await Promise.race([running, sleep(CLOSE_MS, undefined, { ref: false })]);
      await opened?.close();
    },
  };
}
