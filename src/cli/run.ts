import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { packageRoot } from '../config/index.js';
import { CancelledError, ConfigError, InvalidInputError, SearchloopError } from '../errors.js';
import { askCommand } from './ask.js';
import { benchCommand } from './bench.js';
import { configCommand } from './config-command.js';
import { addGlobalFlags } from './context.js';
import { doctorCommand } from './doctor.js';
import { evaluateCommand } from './evaluate.js';
import { indexCommand } from './index-command.js';
import { interruptedText } from './interrupted.js';
import { keysCommand } from './keys-command.js';
import { loopCommand } from './loop-command.js';
import { modelsCommand } from './models.js';
import { serveCommand } from './serve.js';
import { setupCommand } from './setup.js';
import { trainCommand } from './train-command.js';
import { trajectoriesCommand } from './trajectories-command.js';

/** Runs one command line and returns its exit code. */
export async function runCli(argv: readonly string[]): Promise<number> {
  const program = addGlobalFlags(
    new Command('searchloop')
      .description('Answers questions by searching, over an OpenAI-compatible API')
      .version(
        (JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { version: string }).version,
      )
      .exitOverride()
      .showHelpAfterError('(--help shows the usage)'),
  );
  for (const command of commands()) program.addCommand(throwing(command));
  let running: Command | null = null;
  program.hook('preAction', (_program, command) => {
    running = command;
  });
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return typeof process.exitCode === 'number' ? process.exitCode : 0;
  } catch (error) {
    return exitCodeOf(error, running);
  }
}

/** A wrong line is thrown at every depth, so that it ends in our exit code and not in commander's own. */
function throwing(command: Command): Command {
  for (const nested of command.commands) throwing(nested);
  return command.exitOverride();
}

function commands(): Command[] {
  return [
    setupCommand(),
    serveCommand(),
    askCommand(),
    modelsCommand(),
    indexCommand(),
    evaluateCommand(),
    trainCommand(),
    loopCommand(),
    trajectoriesCommand(),
    keysCommand(),
    configCommand(),
    doctorCommand(),
    benchCommand(),
  ];
}

function exitCodeOf(error: unknown, command: Command | null): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof CancelledError) {
    process.stderr.write(`${interruptedText(command)}\n`);
    return 130;
  }
  process.stderr.write(`error: ${faultText(error)}\n`);
  return error instanceof ConfigError || error instanceof InvalidInputError ? 2 : 1;
}

const DISK_FAULTS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EROFS: 'the file system is read-only',
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'a part of the path is no folder',
  EMFILE: 'too many files are open',
  EIO: 'the disk failed',
};

const DATABASE_FAULTS: readonly (readonly [RegExp, string])[] = [
  [/^SQLITE_FULL/, 'the disk is full'],
  [/^SQLITE_IOERR/, 'the disk failed'],
  [/^SQLITE_(READONLY|CANTOPEN|PERM)/, 'this user may not write there, or the file system is read-only'],
];

const OTHER_FOLDERS = 'paths.home, paths.indexes and paths.data choose other folders';

/** What a person can do something about is told in words; a fault of ours with its stack. */
function faultText(error: unknown): string {
  if (error instanceof SearchloopError) return error.message;
  const { code, path, syscall, message, stack } = (error ?? {}) as NodeJS.ErrnoException;
  const ofDatabase = DATABASE_FAULTS.find(([pattern]) => pattern.test(code ?? ''));
  if (ofDatabase !== undefined) return `${ofDatabase[1]}: ${message} (${code}); ${OTHER_FOLDERS}`;
  const reason = DISK_FAULTS[code ?? ''];
  if (reason === undefined || syscall === undefined) return String(stack ?? message ?? error);
  const where = path === undefined ? '' : ` ${path}`;
  return `${reason}: ${syscall}${where} (${code}); ${OTHER_FOLDERS}`;
}
