// What the servers of this bench answer with: the tiny world, and the default model over the demo index.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { homeFolder, loadConfig } from '#searchloop/config/index.js';
import { ensureModel, preparePrecision } from '#searchloop/model/index.js';
import type { Auditor } from '#searchloop/trajectory/index.js';
import { demoQuestions } from '../demo-questions.js';
import { SEARCHLOOP, sets } from '../searchloop.js';
import { openTinyPlace, TINY_SETTINGS } from '../tiny-world/house.js';
import { worldQuestions } from '../tiny-world/questions.js';

export interface AskedQuestion {
  readonly question: string;
  readonly goldenAnswers: readonly string[];
}

export interface House {
  readonly name: 'tiny' | 'real';
  /** Settings of a server on this data folder. */
  flags(data: string, more?: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** Added where the loop shall run. */
  readonly loopFlags: Readonly<Record<string, unknown>>;
  /** States of its loop that kills shall cut off. */
  readonly phases: readonly string[];
  readonly questions: readonly AskedQuestion[];
  /** Fields of each request. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly auditor: Auditor;
}

const COMMON = {
  'server.shutdownGraceMs': 0,
  'log.level': 'warn',
  // On a machine that is busy with clients and kills, else few answers would be acknowledged in time.
  'store.commitTimeoutMs': 2000,
};

export async function tinyHouse(folder: string): Promise<House> {
  const place = await openTinyPlace(join(folder, 'tiny'));
  const gate = join(folder, 'tiny', 'gate.jsonl');
  const lines = worldQuestions(place.world, 'held-out')
    .slice(0, 300)
    .map(({ id, question, goldenAnswers }) =>
      JSON.stringify({ id, question, golden_answers: goldenAnswers }),
    );
  writeFileSync(gate, `${lines.join('\n')}\n`);
  const { home, model } = place;
  const graphs = await preparePrecision(home, model, 'fp32');
  return {
    name: 'tiny',
    flags: (data, more = {}) => ({
      ...TINY_SETTINGS,
      ...COMMON,
      'paths.home': home,
      'paths.data': data,
      'retrieval.index': place.indexes.all,
      'engine.threads': 1,
      ...more,
    }),
    loopFlags: {
      'loop.enabled': true,
      'loop.minQuestions': 2,
      'loop.idleMs': 10,
      'loop.patienceMs': 100,
      'loop.pollMs': 100,
      'loop.gateEvery': 2,
      'loop.gateData': gate,
      'training.threads': 1,
      'training.rank': 4,
      'training.alpha': 8,
      'training.batchSequences': 16,
      'training.miniBatchSequences': 16,
      'training.groupSize': 4,
      // Nearly all groups differ in reward then: a step that changes nothing is none to cut off.
      'training.searchCost': 0.01,
      // Learning is not what is shown: many candidates, judged by questions of which there are few, and published.
      'training.learningRate': 1e-3,
      'training.warmupShare': 0.005,
      'loop.confirmEvery': 0,
      'loop.gateMargin': 0.2,
      'loop.gateAlpha': 0.2,
      'loop.maxKl': 5,
      'loop.maxValidityLoss': 1,
      'loop.guardPatience': 100,
    },
    phases: ['rolling', 'training', 'gating', 'publishing'],
    questions: worldQuestions(place.world, 'training'),
    request: { model: 'searchloop' },
    auditor: { modelDigest: graphs.digest, tokenizer: await model.readTokenizer() },
  };
}

export async function realHouse(folder: string): Promise<House> {
  const indexes = join(folder, 'real', 'index');
  const config = loadConfig({ env: {}, flags: { 'paths.indexes': indexes } });
  const home = homeFolder(config);
  const model = await ensureModel(config.model.policy, home);
  const graphs = await preparePrecision(home, model, config.engine.precision);
  return {
    name: 'real',
    flags: (data, more = {}) => ({
      ...COMMON,
      'paths.data': data,
      'paths.indexes': indexes,
      'engine.maxSequenceTokens': 1024,
      ...more,
    }),
    // Steps so small that some end between two kills. The gate has no questions: it waits, and training goes on.
    loopFlags: {
      'loop.enabled': true,
      'loop.minQuestions': 2,
      'loop.idleMs': 10,
      'loop.patienceMs': 100,
      'loop.gateEvery': 10_000,
      'loop.guardPatience': 100,
      'training.threads': 1,
      'training.batchSequences': 2,
      'training.miniBatchSequences': 2,
      'training.groupSize': 2,
      'training.actionBudget': 1,
      'training.turnTokens': 16,
      'training.passageTokens': 32,
      'training.observationTokens': 110,
      'training.searchCost': 0.01,
    },
    phases: ['rolling', 'training'],
    questions: await demoQuestions(),
    request: { model: 'searchloop:rag', max_tokens: 24 },
    auditor: { modelDigest: graphs.digest, tokenizer: await model.readTokenizer() },
  };
}

/** `searchloop trajectories audit` on a data folder. @returns exit code and what it said */
export function auditOnCommandLine(house: House, data: string): { code: number; text: string } {
  try {
    const args = [SEARCHLOOP, 'trajectories', 'audit', ...sets(house.flags(data))];
    return {
      code: 0,
      text: execFileSync(process.execPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }),
    };
  } catch (error) {
    const { status, stdout, stderr } = error as { status: number; stdout: string; stderr: string };
    return { code: status, text: `${stdout}${stderr}` };
  }
}

/** Where this bench keeps its folders unless told otherwise: on a real disk, so that syncs are syncs. */
export function benchFolder(): string {
  const folder = join(homedir(), '.cache', 'searchloop', 'bench', 'faults');
  if (!existsSync(folder)) mkdirSync(folder, { recursive: true });
  return folder;
}
