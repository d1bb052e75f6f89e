// How commands speak: data as JSON with --json, else text; progress as a bar on a terminal, else plain lines.

import { styleText } from 'node:util';
import cliProgress from 'cli-progress';
import type { OnProgress } from '../util/progress.js';
import { unitAfter } from './counted.js';

type Style = Parameters<typeof styleText>[0];

export interface Output {
  readonly json: boolean;
  /** Prints the result of a command: the value as JSON with --json, else the text. */
  result(value: unknown, text: string): void;
  /** A line for people on stderr; silent with --json. */
  note(line: string): void;
  /** Starts showing progress; call `stop` when the work ends or fails. */
  progress(): { readonly on: OnProgress; stop(): void };
}

const LINE_INTERVAL_MS = 5_000;

/** Colours text on a terminal only. */
export function styled(style: Style, text: string, stream: { isTTY?: boolean } = process.stdout): string {
  return stream.isTTY ? styleText(style, text) : text;
}

export function createOutput(options: { readonly json: boolean }): Output {
  const { json } = options;
  return {
    json,
    result: (value, text) => void process.stdout.write(`${json ? JSON.stringify(value) : text}\n`),
    note: (line) => void (json || process.stderr.write(`${line}\n`)),
    progress: () => (process.stderr.isTTY && !json ? barProgress() : lineProgress()),
  };
}

function barProgress(): { on: OnProgress; stop(): void } {
  let bar: cliProgress.SingleBar | null = null;
  let stage = '';
  const stop = (): void => {
    bar?.stop();
    bar = null;
  };
  return {
    stop,
    on: (progress) => {
      if (progress.stage !== stage) {
        stop();
        stage = progress.stage;
      }
      if (!bar) {
        const counted =
          progress.total === null
            ? `${stage} {value} ${progress.unit}`
            : `${stage} {bar} {percentage}% {value}/{total} ${progress.unit}, {eta_formatted} left`;
        bar = new cliProgress.SingleBar(
          { format: counted, hideCursor: true, etaBuffer: 50, stream: process.stderr },
          cliProgress.Presets.shades_classic,
        );
        bar.start(progress.total ?? 0, progress.done);
      }
      bar.update(progress.done);
    },
  };
}

function lineProgress(): { on: OnProgress; stop(): void } {
  let last = 0;
  let lastStage = '';
  return {
    stop: () => {},
    on: ({ stage, done, total, unit }) => {
      const now = Date.now();
      const finished = total !== null && done >= total;
      if (stage === lastStage && now - last < LINE_INTERVAL_MS && !finished) return;
      last = now;
      lastStage = stage;
      const share = total ? ` (${Math.floor((100 * done) / total)} %)` : '';
      const counts = total === null ? `${done}` : `${done} of ${total}`;
      process.stderr.write(`${stage}: ${counts} ${unitAfter(total ?? done, unit)}${share}\n`);
    },
  };
}
