// The tiny world as a server's place: model, indexes, questions for the gate, keys, and one settings file.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type WorldQuestion, worldQuestions } from '#searchloop/evaluation/index.js';
import { openTinyPlace, TINY_SETTINGS, TINY_TRAINING, type TinyPlace } from '#searchloop/loop/index.js';
import { createApiKey, openTrajectoryStore, type Scope } from '#searchloop/trajectory/index.js';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';
import { sha256Hex } from '#searchloop/util/digest.js';

type Settings = Readonly<Record<string, unknown>>;

/** Held-out questions by which versions are compared; an admin gave the others to the gate. */
const PROBE_QUESTIONS = 300;

export interface LoopPlace {
  readonly tiny: TinyPlace;
  readonly folder: string;
  /** Holds the store and the loop's folder. */
  readonly data: string;
  readonly settingsFile: string;
  /** What users ask. */
  readonly asked: readonly WorldQuestion[];
  /** Seen by neither training nor gate: the fixed set by which versions are compared. */
  readonly probe: readonly WorldQuestion[];
  readonly keys: Keys;
}

export interface Keys {
  readonly ask: string;
  readonly admin: string;
  /** Of people who label. */
  readonly feedback: readonly string[];
}

/** The world with its model and indexes, made once for all episodes of a folder. */
export const openWorld = (folder: string): Promise<TinyPlace> => openTinyPlace(join(folder, 'world'));

/** @param settings  over those of the tiny world, as `section.key` */
export async function openLoopPlace(
  tiny: TinyPlace,
  folder: string,
  settings: Settings = {},
): Promise<LoopPlace> {
  const data = join(folder, 'data');
  await mkdir(data, { recursive: true });
  const heldOut = worldQuestions(tiny.world, 'held-out');
  const others = worldQuestions(tiny.world, 'training');
  // Working set and confirmations take more than is held out: half of the other questions are set aside too.
  const gate = [...heldOut.slice(PROBE_QUESTIONS), ...others.filter(isSetAside)];
  const gateFile = join(folder, 'gate.jsonl');
  await writeFileAtomic(gateFile, gate.map(line).join(''));
  const settingsFile = join(folder, 'settings.json');
  const all = {
    ...TINY_SETTINGS,
    ...loopTraining(),
    ...SERVING,
    'paths.home': tiny.home,
    'paths.data': data,
    'retrieval.index': tiny.indexes.all,
    'loop.gateData': gateFile,
    ...settings,
  };
  await writeFileAtomic(settingsFile, `${JSON.stringify(tree(all), null, 2)}\n`);
  return {
    tiny,
    folder,
    data,
    settingsFile,
    asked: others.filter((question) => !isSetAside(question)),
    probe: heldOut.slice(0, PROBE_QUESTIONS),
    keys: await openKeys(data),
  };
}

const isSetAside = ({ id }: WorldQuestion): boolean =>
  Number.parseInt(sha256Hex(id).slice(0, 8), 16) % 2 === 0;

/** Of a whole run only what a single step takes. */
function loopTraining(): Settings {
  const whole = ['training.steps', 'training.validateEvery', 'training.checkpointEvery'];
  return Object.fromEntries(Object.entries(TINY_TRAINING).filter(([name]) => !whole.includes(name)));
}

const SERVING: Settings = {
  'server.port': 0,
  'engine.maxSequences': 32,
  'engine.maxAdapters': 16,
  'training.groupSize': 5,
  // A share of a thousand steps: the loop has no end that a warm-up could be a part of.
  'training.warmupShare': 0.005,
  'loop.enabled': true,
  'loop.minQuestions': 100,
  'loop.pollMs': 500,
  'loop.idleMs': 100,
  'loop.keepVersions': 1000,
};

const line = ({ id, question, goldenAnswers }: WorldQuestion): string =>
  `${JSON.stringify({ id, question, golden_answers: goldenAnswers })}\n`;

function tree(flat: Settings): Record<string, Record<string, unknown>> {
  const sections: Record<string, Record<string, unknown>> = {};
  for (const [path, value] of Object.entries(flat)) {
    const [section, key] = path.split('.') as [string, string];
    sections[section] = { ...sections[section], [key]: value };
  }
  return sections;
}

const KEYS: Readonly<Record<string, readonly Scope[]>> = {
  ask: ['ask'],
  admin: ['admin'],
  ...Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`labels ${i}`, ['feedback'] as const])),
};

/** Made anew each time, since the store keeps only digests; old ones are revoked, and what they said stays. */
async function openKeys(data: string): Promise<Keys> {
  const store = openTrajectoryStore({
    storage: { kind: 'sqlite', path: join(data, 'trajectories.db') },
    retry: false,
  });
  try {
    for (const { id, revokedAt } of await store.keys()) if (revokedAt === null) await store.revokeKey(id);
    const made: string[] = [];
    for (const [name, scopes] of Object.entries(KEYS)) {
      const { key, stored } = createApiKey(name, scopes);
      await store.createKey(stored);
      made.push(key);
    }
    const [ask = '', admin = '', ...feedback] = made;
    return { ask, admin, feedback };
  } finally {
    await store.close();
  }
}
