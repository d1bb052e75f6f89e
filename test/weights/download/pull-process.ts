import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';

export interface PullOutcome {
  readonly files?: readonly string[];
  readonly code?: string;
  readonly message?: string;
}

export interface PullProcess {
  readonly child: ChildProcess;
  /** Null when it was killed. */
  readonly outcome: Promise<PullOutcome | null>;
  /** The process runs its own code. */
  readonly started: Promise<void>;
}

/** Starts `pull-child.mjs` with these variables beside ours. */
export function startPull(
  manifestFile: string,
  home: string,
  variables: Readonly<Record<string, string>>,
): PullProcess {
  const child = spawn(process.execPath, [join(__dirname, 'pull-child.mjs'), manifestFile, home], {
    env: { ...process.env, ...variables },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  const started = new Promise<void>((resolve) => child.stdout?.once('data', () => resolve()));
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const outcome = new Promise<PullOutcome | null>((resolve) =>
    child.on('close', () => {
      const line = text.split('\n').find((item) => item.startsWith('{'));
      resolve(line === undefined ? null : (JSON.parse(line) as PullOutcome));
    }),
  );
  return { child, outcome, started };
}
