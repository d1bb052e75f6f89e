// The tiny world as a server's place: model, indexes, questions for the gate, keys, and one settings file.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';
import { sha256Hex } from '#searchloop/util/digest.js';
import { openTinyPlace, TINY_SETTINGS, type TinyPlace } from '../tiny-world/house.js';
import { type WorldQuestion, worldQuestions } from '../tiny-world/questions.js';
import { TINY_TRAINING } from '../tiny-world/run.js';
import { openKeys, questionLine, type ServedPlace, type Settings, writeSettings } from './served-place.js';

/** Held-out questions by which versions are compared, unless told otherwise; an admin gave the others to the gate. */
const PROBE_QUESTIONS = 300;

export interface LoopPlace extends ServedPlace<WorldQuestion> {
  readonly tiny: TinyPlace;
  /** Seen by neither training nor gate: the fixed set by which versions are compared. */
  readonly probe: readonly WorldQuestion[];
}

export interface LoopPlaceOptions {
  readonly probeQuestions?: number;
  /** Share of the questions beside the held-out ones that the gate has and nobody asks. */
  readonly setAside?: number;
}

/** The world with its model and indexes, made once for all episodes of a folder. */
export const openWorld = (folder: string): Promise<TinyPlace> => openTinyPlace(join(folder, 'world'));

/** @param settings  over those of the tiny world, as `section.key` */
export async function openLoopPlace(
  tiny: TinyPlace,
  folder: string,
  settings: Settings = {},
  { probeQuestions = PROBE_QUESTIONS, setAside = 1 / 2 }: LoopPlaceOptions = {},
): Promise<LoopPlace> {
  const data = join(folder, 'data');
  await mkdir(data, { recursive: true });
  const heldOut = worldQuestions(tiny.world, 'held-out');
  const others = worldQuestions(tiny.world, 'training');
  // Working set and confirmations take more than is held out: a part of the other questions is set aside too.
  const isSetAside = ({ id }: WorldQuestion): boolean =>
    Number.parseInt(sha256Hex(id).slice(0, 8), 16) / 2 ** 32 < setAside;
  const gate = [...heldOut.slice(probeQuestions), ...others.filter(isSetAside)];
  const gateFile = join(folder, 'gate.jsonl');
  await writeFileAtomic(gateFile, gate.map(questionLine).join(''));
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
  await writeSettings(settingsFile, all);
  return {
    tiny,
    folder,
    data,
    settingsFile,
    asked: others.filter((question) => !isSetAside(question)),
    probe: heldOut.slice(0, probeQuestions),
    keys: await openKeys(data),
  };
}

/** Of a whole run only what a single step takes. */
function loopTraining(): Settings {
  const whole = ['training.steps', 'training.validateEvery', 'training.checkpointEvery'];
  return Object.fromEntries(Object.entries(TINY_TRAINING).filter(([name]) => !whole.includes(name)));
}

const SERVING: Settings = {
  'server.port': 0,
  'engine.maxSequences': 32,
  // A model so small gains nothing by a second thread, and each of its many products would wait where one of two is held up.
  'engine.threads': 1,
  'engine.maxAdapters': 16,
  'training.groupSize': 5,
  // A share of a thousand steps: the loop has no end that a warm-up could be a part of.
  'training.warmupShare': 0.005,
  'loop.enabled': true,
  'loop.minQuestions': 100,
  'loop.pollMs': 500,
  'loop.idleMs': 100,
  'loop.keepVersions': 1000,
  // The streams that measure swaps shall be of the version that is swapped.
  'model.liveMethods': ['search-r1', 'direct'],
};
