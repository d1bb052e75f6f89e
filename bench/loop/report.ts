// Table and curve of the versions of a life, for people and for docs/loop.md.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '#searchloop/config/index.js';
import { plotRuns } from '#searchloop/training/index.js';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';
import type { Stretch } from './episode.js';
import type { PublishedVersion } from './versions.js';

/** Of users' own questions: how many were answered by a version, and how many of them rightly. */
function usersOf(version: string, stretches: readonly Stretch[]): { answers: number; right: number } {
  const all = stretches.flatMap(({ byVersion }) => byVersion[version] ?? []);
  return {
    answers: all.reduce((sum, { answers }) => sum + answers, 0),
    right: all.reduce((sum, { right }) => sum + right, 0),
  };
}

export function markdownTable(versions: readonly PublishedVersion[], stretches: readonly Stretch[]): string {
  const head = [
    'version',
    'steps',
    'EM, held out',
    'one step',
    'two steps',
    'searches, two steps',
    "users' answers",
    'of them right',
  ];
  const rows = versions.map((version) => {
    const { answers, right } = usersOf(version.version, stretches);
    return [
      version.version.slice(0, 8),
      String(version.steps),
      version.exactMatch.toFixed(3),
      version.oneHop.toFixed(3),
      version.twoHop.toFixed(3),
      version.twoHopSearches.toFixed(2),
      String(answers),
      answers === 0 ? '' : (right / answers).toFixed(3),
    ];
  });
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

export async function writeReport(
  folder: string,
  versions: readonly PublishedVersion[],
  stretches: readonly Stretch[],
  { intoDocs }: { readonly intoDocs: boolean },
): Promise<void> {
  const rows = versions.map(({ place, exactMatch, twoHop, twoHopSearches, version }) => {
    const { answers, right } = usersOf(version, stretches);
    return {
      step: place,
      exactMatch,
      twoHop,
      searches: twoHopSearches,
      // Of a handful of answers a share says little.
      ...(answers < 50 ? {} : { usersRight: right / answers }),
    };
  });
  const picture = plotRuns(
    [{ name: 'published versions, in their order', rows }],
    ['exactMatch', 'twoHop', 'usersRight', 'searches'],
  );
  await writeFileAtomic(join(folder, 'versions.svg'), picture);
  if (!intoDocs) return;
  const docs = join(packageRoot, 'docs');
  await writeFileAtomic(join(docs, 'loop', 'versions.svg'), picture);
  await putBetweenMarks(join(docs, 'loop.md'), 'loop', markdownTable(versions, stretches));
}

/** Puts a table into a page, between the marks of its benchmark. */
export async function putBetweenMarks(path: string, bench: string, table: string): Promise<void> {
  const begin = `<!-- table: written by \`npm run bench -- ${bench}\` -->`;
  const end = '<!-- end of table -->';
  const text = await readFile(path, 'utf8');
  const [before, rest] = text.split(begin);
  const at = rest?.indexOf(end) ?? -1;
  if (before === undefined || rest === undefined || at < 0)
    throw new Error(`${path}: expected the lines "${begin}" and "${end}"`);
  await writeFileAtomic(path, `${before}${begin}\n\n${table}\n\n${rest.slice(at)}`);
}
