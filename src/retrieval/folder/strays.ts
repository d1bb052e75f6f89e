import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type IndexManifest, readManifest } from './manifest.js';

/** Deletes index files that the manifest does not name. */
export async function removeStrays(folder: string): Promise<void> {
  const manifest = await readManifest(folder);
  for (const file of await readdir(folder)) {
    const ours = /^(passages|graph)-[\w-]+\.(sqlite|bin)(-\w+|\.new)?$/.test(file);
    const named = file.startsWith(manifest.passages.file) || file === manifest.graph.file;
    if (ours && !named) await rm(join(folder, file), { force: true });
  }
}

/** End of a graph file's name: the revision that it was folded at, none as built. */
const FOLDED_AT = /(-r\d+)?\.bin$/;

export const foldedGraphFile = (file: string, revision: number): string =>
  file.replace(FOLDED_AT, `-r${revision}.bin`);

/** Deletes the graph files that this index had before. Those of a build that is being published stay. */
export async function removeOlderGraphs(folder: string, { graph }: IndexManifest): Promise<void> {
  const stem = graph.file.replace(FOLDED_AT, '');
  for (const file of await readdir(folder))
    if (file.startsWith(stem) && file !== graph.file) await rm(join(folder, file), { force: true });
}
