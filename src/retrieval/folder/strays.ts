import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readManifest } from './manifest.js';

/** Deletes index files that the manifest does not name. */
export async function removeStrays(folder: string): Promise<void> {
  const manifest = await readManifest(folder);
  for (const file of await readdir(folder)) {
    const ours = /^(passages|graph)-[\w-]+\.(sqlite|bin)(-\w+|\.new)?$/.test(file);
    const named = file.startsWith(manifest.passages.file) || file === manifest.graph.file;
    if (ours && !named) await rm(join(folder, file), { force: true });
  }
}
