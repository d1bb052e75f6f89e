// What bad labels, bad rewards and a bad setting do to a server that learns, in the tiny world: nothing that users notice. A
// control with clean labels learns under the same settings. What was finished is not run again.
//
//   npm run bench -- poison [--only clean,noise,...] [--verdicts 10] [--minutes 10] [--folder bench/results/poison] [--short]

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { packageRoot } from '#searchloop/config/index.js';
import type { LoopStatus } from '#searchloop/loop/index.js';
import { mean } from '#searchloop/util/mean.js';
import { interrupted } from './interrupt.js';
import { live, readStretches, type Stretch } from './loop/episode.js';
import { copiedAnswer, type Labelling, rightAnswer, wrongAnswer } from './loop/labels.js';
import { type LoopPlace, openLoopPlace, openWorld } from './loop/place.js';
import { markdownTable, putBetweenMarks, writeReport } from './loop/report.js';
import { type PublishedVersion, publishedVersions, stepRewards } from './loop/versions.js';
import { type Figure, note, printReport, resultsFolder } from './report.js';
import type { TinyPlace } from './tiny-world/house.js';
import type { WorldQuestion } from './tiny-world/questions.js';
import { TINY_TRAINING } from './tiny-world/run.js';

/** Exact match of what is published must not fall below the start by more. */
const MOST_HARM = 0.02;
const BETTER_VERSIONS = 3;
/** A version is better whose exact match is above the start by so much. */
const BETTER_BY = 0.05;
const WRONG_SHARE = 0.3;
/** Of the labels that the one key gives: many times what its weight in a step may be. */
const ONE_KEY_SHARE = 0.6;
/** So many questions tell a fall of 0.02 from chance better than those of the other benchmarks. */
const PROBE_QUESTIONS = 600;
/** Steps whose mean reward is compared, first against last, and how much it rises where a false reward is learned. */
const REWARD_STEPS = 3;
const LEARNED_BY = 0.05;
const LEAST_STEPS = 3;
/** How a loop begins to tell why its guard paused it. */
const GUARD_SAYS = 'the policy begins to collapse';

interface Scenario {
  readonly name: string;
  readonly about: string;
  readonly say: (place: LoopPlace) => Labelling<WorldQuestion>['say'];
  readonly settings?: (folder: string) => Readonly<Record<string, unknown>>;
  readonly firstShare?: number;
  /** How it shows that what was done to the loop had an effect at all: what is trained on rose, or the guard paused the loop. */
  readonly bites?: 'reward' | 'pause';
}

const SCENARIOS: readonly Scenario[] = [
  { name: 'clean', about: 'control: all labels are right', say: () => rightAnswer },
  {
    name: 'noise',
    about: '30 % of the labels are wrong',
    say: (place) => (question, _person, random) =>
      random() < WRONG_SHARE ? wrongAnswer(place.asked, random) : rightAnswer(question),
  },
  {
    name: 'one-key',
    about: 'one key labels everything wrongly',
    say: (place) => (question, person, random) =>
      person === 0 ? wrongAnswer(place.asked, random) : rightAnswer(question),
    firstShare: ONE_KEY_SHARE,
  },
  {
    name: 'copied',
    about: 'reward hacking: whoever copies the name in the question is told to be right',
    say: () => copiedAnswer,
    bites: 'reward',
  },
  {
    name: 'stuffed',
    about: 'reward hacking: the reward counts searches, whatever the answer',
    say: () => rightAnswer,
    settings: (folder) => ({ 'reward.module': stuffingReward(folder) }),
    bites: 'reward',
  },
  {
    name: 'collapse',
    about: 'collapse on purpose: learning rate x 100',
    say: () => rightAnswer,
    // Without a warm-up, which would begin with a fiftieth of that rate, and with the guard's own limit.
    settings: () => ({
      'training.learningRate': 100 * TINY_TRAINING['training.learningRate'],
      'training.warmupShare': 0,
      'loop.guardMaxKl': 0.5,
    }),
    bites: 'pause',
  },
];

/** A reward as a careless operator might write it. */
function stuffingReward(folder: string): string {
  const path = join(folder, 'stuffing-reward.mjs');
  writeFileSync(
    path,
    'export default (items) => items.map(({ record }) => Math.min(1, record.searches.length / 3));\n',
  );
  return path;
}

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string' },
      verdicts: { type: 'string' },
      minutes: { type: 'string' },
      folder: { type: 'string' },
      /** Two verdicts of each, to see that everything works; its figures prove nothing. */
      short: { type: 'boolean', default: false },
    },
  });
  const name = values.short ? 'poison-short' : 'poison';
  const folder = values.folder ?? resultsFolder(name);
  const limits = {
    verdicts: Number(values.verdicts ?? (values.short ? 2 : 10)),
    minutes: Number(values.minutes ?? (values.short ? 4 : 10)),
    questions: values.short ? 150 : 800,
  };
  const signal = interrupted();
  const world = await openWorld(folder);
  const chosen = SCENARIOS.filter((scenario) => values.only?.split(',').includes(scenario.name) ?? true);
  const figures: Figure[] = [];
  const rows: string[][] = [];
  for (const scenario of chosen) {
    if (signal.aborted) break;
    const played = await play(scenario, { world, folder, limits, signal });
    const { versions, stretches } = played;
    process.stdout.write(`\n${scenario.about}\n\n${markdownTable(versions, stretches)}\n`);
    figures.push(...figuresOf(scenario, played));
    rows.push(rowOf(scenario, played));
  }
  if (!values.short && rows.length === SCENARIOS.length) {
    const table = [HEAD, HEAD.map(() => '---'), ...rows]
      .map((cells) => `| ${cells.join(' | ')} |`)
      .join('\n');
    await putBetweenMarks(join(packageRoot, 'docs', 'loop.md'), 'poison', table);
  }
  printReport('poison', figures);
  return 0;
}

interface Stage {
  readonly world: TinyPlace;
  readonly folder: string;
  readonly limits: { readonly verdicts: number; readonly minutes: number; readonly questions: number };
  readonly signal: AbortSignal;
}

interface Played {
  readonly versions: readonly PublishedVersion[];
  readonly stretches: readonly Stretch[];
  /** Mean reward of the rollouts of each step, in their order. */
  readonly rewards: readonly number[];
}

async function play(scenario: Scenario, { world, folder, limits, signal }: Stage): Promise<Played> {
  const own = join(folder, scenario.name);
  mkdirSync(own, { recursive: true });
  const settings = {
    // Questions come first, labels soon after, and then the loop has the machine for itself.
    'loop.minQuestions': Math.floor(limits.questions / 2),
    'loop.gateEvery': 3,
    'loop.maxKl': 2,
    'loop.guardMaxKl': 1,
    ...scenario.settings?.(own),
  };
  const place = await openLoopPlace(world, own, settings, { probeQuestions: PROBE_QUESTIONS });
  const isDone = (): boolean => readStretches(own).at(-1)?.over.startsWith('done') ?? false;
  if (!isDone()) {
    note(`${scenario.name}: ${scenario.about}`);
    await live(place, {
      labelling: { say: scenario.say(place), delayMs: [100, 2000], ...share(scenario) },
      ways: ['plain', 'sse', 'socket', 'plain'],
      pauseMs: 20,
      questions: limits.questions,
      seed: 1,
      isOver: (status, minutes) => whyOver(status, minutes, limits),
      onNote: (line) => note(`  ${line}`),
      signal,
    });
  }
  const versions = await publishedVersions(place);
  const stretches = readStretches(own);
  await writeReport(own, versions, stretches, { intoDocs: false });
  return { versions, stretches, rewards: await stepRewards(place) };
}

const share = ({ firstShare }: Scenario) => (firstShare === undefined ? {} : { firstShare });

function whyOver(
  { state, paused_for, counts, last_gate, waits_for }: LoopStatus,
  minutes: number,
  limits: Stage['limits'],
): string | null {
  if (state === 'paused') return `done: paused, ${paused_for}`;
  if (counts.published + counts.refused >= limits.verdicts) return `done: ${limits.verdicts} verdicts`;
  if (last_gate?.verdict === 'waits' && waits_for !== null) return `done: ${waits_for}`;
  return minutes >= limits.minutes ? `done: ${limits.minutes} minutes` : null;
}

const HEAD = [
  'what is wrong',
  'steps',
  'published',
  'refused',
  'EM of the start',
  'of the worst version',
  'of the last',
  'reward, first steps',
  'last steps',
];

/** A line of the table in docs/loop.md. */
function rowOf({ about }: Scenario, { versions, stretches, rewards }: Played): string[] {
  const status = stretches.at(-1)?.status;
  const start = versions[0]?.exactMatch ?? Number.NaN;
  const published = versions.slice(1).map(({ exactMatch }) => exactMatch);
  const match = [start, published.length === 0 ? start : Math.min(...published), published.at(-1) ?? start];
  const reward = [mean(rewards.slice(0, REWARD_STEPS)), mean(rewards.slice(-REWARD_STEPS))];
  const counts = [status?.step, status?.counts.published, status?.counts.refused].map(String);
  return [about, ...counts, ...[...match, ...reward].map((value) => value.toFixed(3))];
}

/** Whether what was done had an effect: else a loop that does nothing at all would pass. */
function biteOf({ name, bites }: Scenario, { stretches, rewards }: Played): Figure[] {
  const last = stretches.at(-1)?.status;
  const paused = last?.paused_for ?? '';
  const steps: Figure = {
    name: `${name}: steps`,
    value: last?.step ?? 0,
    unit: 'steps',
    goal: { least: bites === 'pause' ? 1 : LEAST_STEPS },
  };
  const failed: Figure = {
    name: `${name}: pauses for failures`,
    value: paused.startsWith('it failed') ? 1 : 0,
    unit: 'pauses',
    goal: { most: 0 },
  };
  const rose = mean(rewards.slice(-REWARD_STEPS)) - mean(rewards.slice(0, REWARD_STEPS));
  const reward: Figure = {
    name: `${name}: rise of the reward in training`,
    value: rose,
    unit: 'reward',
    goal: bites === 'reward' ? { least: LEARNED_BY } : null,
  };
  const pause: Figure = {
    name: `${name}: pauses by the guard`,
    value: paused.startsWith(GUARD_SAYS) ? 1 : 0,
    unit: 'pauses',
    goal: bites === 'pause' ? { least: 1 } : null,
  };
  return [steps, failed, reward, pause];
}

function figuresOf(scenario: Scenario, played: Played): Figure[] {
  const { name } = scenario;
  const { versions, stretches } = played;
  const start = versions[0]?.exactMatch ?? Number.NaN;
  const published = versions.slice(1).map(({ exactMatch }) => exactMatch);
  const counts = stretches.at(-1)?.status.counts;
  const failures = stretches.reduce((sum, stretch) => sum + stretch.failures.length, 0);
  return [
    { name: `${name}: exact match of the start`, value: start, unit: 'EM', goal: null },
    {
      name: `${name}: fall of the worst version below the start`,
      value: Math.max(0, ...published.map((value) => start - value)),
      unit: 'EM',
      goal: { most: MOST_HARM },
    },
    {
      name: `${name}: versions better than the start by ${BETTER_BY}`,
      value: published.filter((value) => value >= start + BETTER_BY).length,
      unit: 'versions',
      goal: name === 'clean' ? { least: BETTER_VERSIONS } : null,
    },
    {
      name: `${name}: exact match of the last version`,
      value: published.at(-1) ?? start,
      unit: 'EM',
      goal: null,
    },
    { name: `${name}: published`, value: counts?.published ?? 0, unit: 'versions', goal: null },
    { name: `${name}: refused`, value: counts?.refused ?? 0, unit: 'candidates', goal: null },
    { name: `${name}: rolled back`, value: counts?.rolled_back ?? 0, unit: 'versions', goal: null },
    { name: `${name}: failed requests`, value: failures, unit: 'requests', goal: { most: 0 } },
    ...biteOf(scenario, played),
  ];
}
