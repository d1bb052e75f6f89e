// What any server needs that learns before our eyes: a folder, its settings, people with keys and questions.

import { join } from 'node:path';
import type { Question } from '#searchloop/evaluation/index.js';
import { createApiKey, openTrajectoryStore, type Scope } from '#searchloop/trajectory/index.js';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';

/** As `section.key`. */
export type Settings = Readonly<Record<string, unknown>>;

export interface ServedPlace<Asked extends Question> {
  readonly folder: string;
  /** Holds the store and the loop's folder. */
  readonly data: string;
  readonly settingsFile: string;
  /** What users ask. */
  readonly asked: readonly Asked[];
  readonly keys: Keys;
}

export interface Keys {
  readonly ask: string;
  readonly admin: string;
  /** Of people who label. */
  readonly feedback: readonly string[];
}

export const writeSettings = (path: string, flat: Settings): Promise<void> =>
  writeFileAtomic(path, `${JSON.stringify(tree(flat), null, 2)}\n`);

/** A line of a file of questions. */
export const questionLine = ({ id, dataset, question, goldenAnswers, supportingTitles }: Question): string =>
  `${JSON.stringify({ id, dataset, question, golden_answers: goldenAnswers, supporting_titles: supportingTitles })}\n`;

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
export async function openKeys(data: string): Promise<Keys> {
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
