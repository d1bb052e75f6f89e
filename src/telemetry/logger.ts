// JSON lines on stderr, so that stdout stays free for what commands answer.

import { pino } from 'pino';
import type { Config } from '../config/index.js';

export type LogLevel = Config['log']['level'];

type Fields = Readonly<Record<string, unknown>>;

/** The few methods that rooms use. An error goes under `err`. */
export interface Logger {
  debug(fields: Fields, message: string): void;
  info(fields: Fields, message: string): void;
  warn(fields: Fields, message: string): void;
  error(fields: Fields, message: string): void;
  /** A logger whose lines all carry these fields, such as `requestId`. */
  child(fields: Fields): Logger;
}

/** Where lines go; each write is one line with its newline. */
export interface LogDestination {
  write(line: string): void;
}

export function createLogger(options: {
  readonly level: LogLevel;
  /** Default: stderr. */
  readonly destination?: LogDestination;
}): Logger {
  return pino(
    { level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    options.destination ?? pino.destination(2),
  );
}
