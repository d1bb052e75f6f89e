import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from './schema.js';

/** Folder that holds package.json, config/, models/ and index/: the parent of src/ and of dist/. */
export const packageRoot = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Cache folder of models: `paths.home`, else $XDG_CACHE_HOME/searchloop, else ~/.cache/searchloop. */
export function homeFolder(config: Pick<Config, 'paths'>): string {
  if (config.paths.home !== null) return resolve(config.paths.home);
  const cache = process.env.XDG_CACHE_HOME;
  return join(cache && isAbsolute(cache) ? cache : join(homedir(), '.cache'), 'searchloop');
}

/** Folder of built indexes. */
export function indexesFolder(config: Pick<Config, 'paths'>): string {
  return config.paths.indexes === null ? join(packageRoot, 'index') : resolve(config.paths.indexes);
}

/** Folder of what must not be lost: `paths.data`, else $XDG_DATA_HOME/searchloop, else ~/.local/share/searchloop. */
export function dataFolder(config: Pick<Config, 'paths'>): string {
  if (config.paths.data !== null) return resolve(config.paths.data);
  const data = process.env.XDG_DATA_HOME;
  return join(data && isAbsolute(data) ? data : join(homedir(), '.local', 'share'), 'searchloop');
}
