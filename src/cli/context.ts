// What every command gets: configuration from the global flags, and a way to speak.

import { setMaxListeners } from 'node:events';
import { type Command, InvalidArgumentError } from 'commander';
import { type Config, loadConfig } from '../config/index.js';
import { CancelledError } from '../errors.js';
import { createOutput, type Output } from './output.js';

export interface CliContext {
  readonly config: Config;
  readonly output: Output;
  /** Fires on the first Ctrl-C, with a CancelledError; work then stops at a place from which it can go on. */
  readonly signal: AbortSignal;
}

/** Flags shared by all commands. `--set section.key=value` reaches every setting. */
export function addGlobalFlags(command: Command): Command {
  return command
    .option('-c, --config <file>', 'settings file (YAML or JSON)')
    .option('-s, --set <section.key=value>', 'one setting; may be repeated', collectSetting, {})
    .option('--json', 'print data as JSON', false);
}

/** Reads global flags wherever they stand on the line. `flags` are settings from the command's own options, which win. */
export function contextOf(command: Command, flags: Readonly<Record<string, unknown>> = {}): CliContext {
  const options = command.optsWithGlobals<{
    config?: string;
    set?: Record<string, unknown>;
    json?: boolean;
  }>();
  const given = Object.entries(flags).filter(([, value]) => value !== undefined);
  const config = loadConfig({
    file: options.config,
    flags: { ...options.set, ...Object.fromEntries(given) },
  });
  return { config, output: createOutput({ json: options.json ?? false }), signal: interruption() };
}

let interrupted: AbortController | null = null;

function interruption(): AbortSignal {
  if (interrupted === null) {
    const controller = new AbortController();
    // Each of many rollouts at once listens to it.
    setMaxListeners(0, controller.signal);
    process.once('SIGINT', () => controller.abort(new CancelledError()));
    interrupted = controller;
  }
  return interrupted.signal;
}

function collectSetting(text: string, before: Record<string, unknown>): Record<string, unknown> {
  const at = text.indexOf('=');
  const key = text.slice(0, at);
  if (at < 1 || !/^\w+\.\w+$/.test(key)) throw new InvalidArgumentError('expected section.key=value');
  return { ...before, [key]: scalar(text.slice(at + 1)) };
}

function scalar(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
