// A PostgreSQL server of its own for a test: Debian's package (.ci/run installs it), a fresh data folder, a socket
// in that folder and no network. PostgreSQL refuses to run as root, so as root it runs as the package's user.

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface PostgresServer {
  /** Its socket, for what comes over another way than the address. */
  readonly socket: string;
  /** Address of a database that is empty. */
  readonly url: string;
  /** A further empty database. */
  createDatabase(name: string): string;
  /** Ends the server as a crash would: no checkpoint, no goodbye. */
  kill(): Promise<void>;
  /** Starts it again on its data. */
  start(): Promise<void>;
  close(): Promise<void>;
}

const ROOT = '/usr/lib/postgresql';

function binaries(): string {
  const versions = existsSync(ROOT) ? readdirSync(ROOT).sort((a, b) => Number(b) - Number(a)) : [];
  const folder = versions
    .map((version) => join(ROOT, version, 'bin'))
    .find((path) => existsSync(join(path, 'initdb')));
  if (folder === undefined)
    throw new Error(`this test needs PostgreSQL below ${ROOT}: apt-get install postgresql (.ci/run does it)`);
  return folder;
}

/** The account to run as; undefined where we are not root. */
function account(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

export async function startPostgres(): Promise<PostgresServer> {
  const bin = binaries();
  const owner = account();
  const folder = mkdtempSync(join(tmpdir(), 'searchloop-pg-'));
  const data = join(folder, 'data');
  mkdirSync(data);
  if (owner !== undefined) for (const path of [folder, data]) chownSync(path, owner.uid, owner.gid);
  const run = (name: string, ...args: string[]): void => {
    const { status, stderr } = spawnSync(join(bin, name), args, { cwd: folder, encoding: 'utf8', ...owner });
    if (status !== 0) throw new Error(`${name} failed: ${stderr}`);
  };
  run('initdb', '-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale=C');
  const url = (name: string): string =>
    `postgres://postgres@localhost/${name}?host=${encodeURIComponent(folder)}`;
  let server: ReturnType<typeof spawn> | null = null;

  async function start(): Promise<void> {
    const args = ['-D', data, '-k', folder, '-c', 'listen_addresses=', '-c', 'shared_buffers=16MB'];
    server = spawn(join(bin, 'postgres'), args, { cwd: folder, stdio: 'ignore', ...owner });
    const deadline = Date.now() + 30_000;
    while (spawnSync(join(bin, 'pg_isready'), ['-h', folder, '-q'], owner ?? {}).status !== 0) {
      if (Date.now() > deadline || server.exitCode !== null) throw new Error('PostgreSQL did not start');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ending = server;
    server = null;
    if (ending === null || ending.exitCode !== null) return;
    const ended = new Promise((resolve) => ending.once('exit', resolve));
    ending.kill(signal);
    await ended;
  }

  await start();
  return {
    socket: join(folder, '.s.PGSQL.5432'),
    url: url('postgres'),
    createDatabase(name) {
      run('createdb', '-h', folder, '-U', 'postgres', name);
      return url(name);
    },
    // SIGQUIT: all its processes end at once.
    kill: () => end('SIGQUIT'),
    start,
    async close() {
      await end('SIGINT');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
