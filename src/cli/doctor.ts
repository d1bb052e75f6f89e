import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { freemem, totalmem } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { type Config, homeFolder, indexesFolder, packageRoot } from '../config/index.js';
import { NotFoundError, SearchloopError } from '../errors.js';
import { listModels } from '../model/index.js';
import { describeIndex, indexFolder } from '../retrieval/index.js';
import { runtimeReport } from '../runtime/index.js';
import { contextOf } from './context.js';
import { counted } from './counted.js';
import { styled } from './output.js';

interface Check {
  readonly name: string;
  /** `bad` makes the command fail; `weak` works, but not as well as it could. */
  readonly state: 'good' | 'weak' | 'bad';
  readonly found: string;
}

const MARKS = { good: ['green', 'ok  '], weak: ['yellow', 'weak'], bad: ['red', 'BAD '] } as const;
const GIB = 2 ** 30;

/** Looks at what the product needs on this machine; exit code 1 when something is missing. */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('check this machine: runtime, memory, disk, models and indexes')
    .action(async (_options, self: Command) => {
      const { config, output } = contextOf(self);
      const checks = [nodeCheck(), await runtimeCheck(), memoryCheck(), await diskCheck(config), pipCheck()];
      checks.push(...(await modelChecks(config)), await indexCheck(config));
      const lines = checks.map(({ name, state, found }) => {
        const [colour, mark] = MARKS[state];
        return `${styled(colour, mark)}  ${name.padEnd(12)}  ${found}`;
      });
      output.result({ checks }, lines.join('\n'));
      if (checks.some(({ state }) => state === 'bad')) process.exitCode = 1;
    });
}

function nodeCheck(): Check {
  const { engines } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  const needed = engines.node.replace('>=', '');
  const numbersOf = (version: string): number[] => version.split('.').map(Number);
  const [[major = 0, minor = 0], [leastMajor = 0, leastMinor = 0]] = [
    numbersOf(process.versions.node),
    numbersOf(needed),
  ];
  const isEnough = major > leastMajor || (major === leastMajor && minor >= leastMinor);
  return {
    name: 'node',
    state: isEnough ? 'good' : 'bad',
    found: `${process.version}; ${needed} or later is needed`,
  };
}

async function runtimeCheck(): Promise<Check> {
  try {
    const report = await runtimeReport();
    const { kind, onnxruntimeVersion, fallbackReason, cpuModel, threads } = report;
    const found = `onnxruntime ${onnxruntimeVersion}, ${counted(threads, 'thread')}, ${cpuModel}`;
    return kind === 'c-api'
      ? { name: 'runtime', state: 'good', found }
      : { name: 'runtime', state: 'weak', found: `${found}; slower binding in use: ${fallbackReason}` };
  } catch (error) {
    return { name: 'runtime', state: 'bad', found: (error as Error).message };
  }
}

function memoryCheck(): Check {
  const [total, free] = [totalmem() / GIB, freemem() / GIB];
  const found = `${free.toFixed(1)} GiB free of ${total.toFixed(1)} GiB`;
  return { name: 'memory', state: total >= 2 ? 'good' : 'weak', found };
}

async function diskCheck(config: Config): Promise<Check> {
  const folder = homeFolder(config);
  for (let path = folder; ; path = path.replace(/\/[^/]*$/, '') || '/') {
    const stats = await statfs(path).catch(() => null);
    if (stats === null && path !== '/') continue;
    const free = stats === null ? 0 : (stats.bavail * stats.bsize) / GIB;
    return {
      name: 'disk',
      state: free >= 2 ? 'good' : 'weak',
      found: `${free.toFixed(1)} GiB free for ${folder}`,
    };
  }
}

function pipCheck(): Check {
  const { status } = spawnSync('python3', ['-m', 'pip', '--version'], { stdio: 'ignore' });
  return status === 0
    ? { name: 'pip', state: 'good', found: 'second source of the default models' }
    : { name: 'pip', state: 'weak', found: 'not found; the default models can come from the model hub only' };
}

async function modelChecks(config: Config): Promise<Check[]> {
  const ids = (await listModels(homeFolder(config))).map(({ id }) => id);
  const { policy, embedder } = config.model;
  return Object.entries({ policy, embedder }).map(([name, id]) => ({
    name,
    state: ids.includes(id) ? 'good' : 'weak',
    found: ids.includes(id) ? id : `${id} is not imported yet; searchloop setup brings it`,
  }));
}

async function indexCheck(config: Config): Promise<Check> {
  const { kind, index, remoteUrl } = config.retrieval;
  if (kind === 'remote') return { name: 'index', state: 'good', found: `remote ${remoteUrl}` };
  try {
    const { passageCount } = await describeIndex(indexFolder(indexesFolder(config), index));
    return { name: 'index', state: 'good', found: `${index}, ${counted(passageCount, 'passage')}` };
  } catch (error) {
    if (error instanceof NotFoundError)
      return { name: 'index', state: 'weak', found: `${index} is not built yet` };
    if (error instanceof SearchloopError) return { name: 'index', state: 'bad', found: error.message };
    throw error;
  }
}
