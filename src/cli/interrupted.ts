import type { Command } from 'commander';

/** What to say of a command that Ctrl-C or SIGTERM ended: how to go on, where that can be. */
export function interruptedText(command: Command | null): string {
  const { resume, output } = (command?.opts() ?? {}) as { resume?: boolean; output?: string };
  if (resume === false) return 'interrupted; the same command with --resume goes on';
  const name = command?.name() ?? '';
  // An answer is not kept, nor are measured ones without a folder for them.
  if (name === 'ask' || (name === 'evaluate' && output === undefined)) return 'interrupted; nothing was kept';
  return 'interrupted; run the same command again to go on';
}
