// A stretch of a server's life: it serves, people ask and label, it learns. The server goes on where it was, so a longer life
// is made of several stretches; what each of them saw is in a file of its
// own, written again and again while it lasts.

import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Question } from '#searchloop/evaluation/index.js';
import type { LoopStatus } from '#searchloop/loop/index.js';
import { exactMatch } from '#searchloop/reward/index.js';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';
import { randomNumbers } from '#searchloop/util/random.js';
import type { Way } from './answers.js';
import { createLabels, type Labelling } from './labels.js';
import type { ServedPlace } from './served-place.js';
import { startServer } from './server.js';
import { type StallReport, stallsOf } from './stalls.js';
import { type AnsweredUser, type PulseSettings, startPulse, startUsers } from './users.js';
import { keepVersions } from './versions.js';

export interface EpisodeSettings<Asked extends Question> {
  readonly labelling: Labelling<Asked>;
  readonly ways: readonly Way[];
  /** Mean pause of a user between two questions. */
  readonly pauseMs: number;
  /** Questions after which they ask no more; absent: as long as the server runs. */
  readonly questions?: number;
  /** Streams that show how long decode steps take while versions change; absent: nothing is measured. */
  readonly pulse?: PulseSettings;
  readonly seed: number;
  /** A loop that was paused before goes on; else it stays as it is. */
  readonly resumes?: boolean;
  /** Why the stretch is over, or null. */
  readonly isOver: (status: LoopStatus, minutes: number) => string | null;
  readonly onNote: (line: string) => void;
  readonly signal: AbortSignal;
}

/** What a stretch saw. */
export interface Stretch {
  readonly minutes: number;
  readonly over: string;
  readonly answers: Readonly<Record<Way, number>>;
  readonly failures: readonly string[];
  /** Answers that name two versions, or one whose fingerprint belongs to another. */
  readonly mixed: number;
  /** Of users' answers by version: how many, how many right. */
  readonly byVersion: Readonly<Record<string, { answers: number; right: number }>>;
  readonly labels: { readonly sent: number; readonly failed: number };
  readonly stalls: StallReport;
  readonly status: LoopStatus;
}

const LOOK_MS = 250;
/** Looks in a row without an answer after which the stretch is over. */
const MOST_SILENT_LOOKS = 40;
/** What is told of a stretch on the way. */
const TELL_MS = 20_000;

export async function live<Asked extends Question>(
  place: ServedPlace<Asked>,
  settings: EpisodeSettings<Asked>,
): Promise<Stretch> {
  const begun = Date.now();
  const before = readStretches(place.folder).length;
  const random = randomNumbers(settings.seed + before);
  const server = await startServer(place);
  const fail: string[] = [];
  const tally = createTally();
  const labels = createLabels(server.url, place.keys.feedback, settings.labelling, random, (words) =>
    fail.push(words),
  );
  const pulse = startPulse(server.url, place.keys.ask, settings.pulse ?? { streams: 0, hidden: [] });
  const users = startUsers<Asked>({
    url: server.url,
    key: place.keys.ask,
    ways: settings.ways,
    pauseMs: settings.pauseMs,
    next: questionsInTurn(place.asked, random, settings.questions),
    random,
    onAnswer(answered) {
      tally.add(answered);
      labels.answered(answered.id, answered.question);
    },
  });
  let status = await server.status();
  if (settings.resumes === true && status.state === 'paused') status = await server.order('resume');
  let over: string | null = null;
  let toldAt = 0;
  let silent = 0;
  const seen = (): Stretch => ({
    minutes: (Date.now() - begun) / 60_000,
    over: over ?? 'broken off',
    ...tally.result(),
    failures: [...fail, ...users.failures, ...pulse.failures],
    labels: labels.counts,
    stalls: stallsOf(pulse.gaps, server.swaps),
    status,
  });
  const keep = (): Promise<void> => keepStretch(place.folder, before, seen());
  try {
    while (over === null) {
      await sleep(LOOK_MS);
      const told = settings.signal.aborted ? null : await server.status().catch((error: Error) => error);
      if (told instanceof Error) {
        silent++;
        if (silent >= MOST_SILENT_LOOKS) over = `the server does not answer: ${told.message}`;
        continue;
      }
      status = told ?? status;
      silent = 0;
      await keepVersions(place);
      const isMeasuring = settings.pulse !== undefined && swapsSoon(status);
      pulse.run(isMeasuring);
      const minutes = (Date.now() - begun) / 60_000;
      over = settings.signal.aborted ? 'interrupted' : settings.isOver(status, minutes);
      if (Date.now() - toldAt > TELL_MS || over !== null) {
        toldAt = Date.now();
        settings.onNote(words(status, minutes, tally.count()));
        // Not while gaps are measured: the work would be one.
        if (!isMeasuring) await keep();
      }
    }
    await users.close();
    await pulse.close();
    await labels.close();
  } finally {
    await server.stop();
  }
  if (silent > 0) fail.push(over ?? 'the server was silent');
  await keep();
  return seen();
}

/** With kept answers a gate is over before a look at the status is, so streams begin with the update before it. */
const swapsSoon = ({ state, steps_to_gate }: LoopStatus): boolean =>
  state === 'gating' || state === 'publishing' || (state === 'training' && steps_to_gate <= 1);

function words(status: LoopStatus, minutes: number, answers: number): string {
  const { state, step, counts, labels } = status;
  const why = status.paused_for ?? status.waits_for ?? status.last_error ?? '';
  return `${minutes.toFixed(1)} min: ${state} ${why}, step ${step}, ${counts.published} published, ${counts.refused} refused, ${answers} answers, ${labels.questions_to_train_on} questions labelled`;
}

/** Shuffled passes, in another order each. */
function questionsInTurn<Asked extends Question>(
  questions: readonly Asked[],
  random: () => number,
  most = Number.POSITIVE_INFINITY,
): () => Asked | null {
  let rest: Asked[] = [];
  let given = 0;
  return () => {
    if (given++ >= most) return null;
    if (rest.length === 0) rest = [...questions];
    const at = Math.floor(random() * rest.length);
    const [chosen] = rest.splice(at, 1);
    return chosen ?? null;
  };
}

function createTally() {
  const answers: Record<Way, number> = { plain: 0, sse: 0, socket: 0 };
  const byVersion: Record<string, { answers: number; right: number }> = {};
  const versionOf = new Map<string, string>();
  let mixed = 0;
  return {
    add({ way, versions, fingerprints, question, text }: AnsweredUser<Question>): void {
      answers[way]++;
      const version = versions[0] as string;
      const isOne = versions.length === 1 && fingerprints.length === 1;
      const fingerprint = fingerprints[0] as string;
      if (!isOne || (versionOf.get(fingerprint) ?? version) !== version) mixed++;
      versionOf.set(fingerprint, version);
      const of = (byVersion[version] ??= { answers: 0, right: 0 });
      of.answers++;
      of.right += exactMatch(text, question.goldenAnswers);
    },
    count: () => answers.plain + answers.sse + answers.socket,
    result: () => ({ answers, byVersion, mixed }),
  };
}

const folderOf = (folder: string): string => join(folder, 'stretches');

/** In their order. */
export function readStretches(folder: string): Stretch[] {
  mkdirSync(folderOf(folder), { recursive: true });
  return readdirSync(folderOf(folder))
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => JSON.parse(readFileSync(join(folderOf(folder), name), 'utf8')) as Stretch);
}

const keepStretch = (folder: string, number: number, stretch: Stretch): Promise<void> =>
  writeFileAtomic(
    join(folderOf(folder), `${String(number).padStart(4, '0')}.json`),
    `${JSON.stringify(stretch)}\n`,
  );
