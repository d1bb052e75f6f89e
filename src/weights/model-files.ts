// Which files of a model folder or repository we know, by their path in it. The names are those of transformers and
// sentence-transformers.

import { InvalidInputError } from '../errors.js';
import type { FileRole } from './manifest.js';
import { INDEX_NAME, SINGLE_NAME } from './open.js';

const NAMED: Readonly<Record<string, FileRole>> = {
  'config.json': 'config',
  'generation_config.json': 'generationConfig',
  'tokenizer.json': 'tokenizer',
  'tokenizer_config.json': 'tokenizerConfig',
  'chat_template.jinja': 'chatTemplate',
  'modules.json': 'modules',
  '1_Pooling/config.json': 'pooling',
  'sentence_bert_config.json': 'sentenceConfig',
  'config_sentence_transformers.json': 'prompts',
};

export interface ModelFile {
  readonly path: string;
  readonly role: FileRole;
}

/**
 * Picks the files of a safetensors model; null when there are no safetensors weights. An index of shards is taken
 * with all shards of its numbering.
 */
export function selectModelFiles(paths: readonly string[]): ModelFile[] | null {
  const there = new Set(paths);
  const weights: ModelFile[] = there.has(INDEX_NAME)
    ? [
        { path: INDEX_NAME, role: 'weightsIndex' },
        ...paths
          .filter((path) => /^[^/]+-\d+-of-\d+\.safetensors$/.test(path))
          .map((path) => ({ path, role: 'weights' as const })),
      ]
    : there.has(SINGLE_NAME)
      ? [{ path: SINGLE_NAME, role: 'weights' }]
      : [];
  if (weights.length === 0) return null;
  const others = Object.entries(NAMED)
    .filter(([path]) => there.has(path))
    .map(([path, role]) => ({ path, role }));
  return [...weights, ...others];
}

/**
 * The one GGUF file that is meant: the named one, or the only one.
 * @throws {InvalidInputError} several and none named, or the named one is not there
 */
export function selectGguf(paths: readonly string[], wanted: string | null, where: string): string {
  const found = paths.filter((path) => path.endsWith('.gguf'));
  if (wanted !== null) {
    if (found.includes(wanted)) return wanted;
    throw new InvalidInputError(
      `${where} has no file ${wanted}; it has ${found.join(', ') || 'no GGUF file'}`,
    );
  }
  if (found.length === 1) return found[0] as string;
  if (found.length === 0)
    throw new InvalidInputError(`${where} has neither ${SINGLE_NAME}, ${INDEX_NAME} nor a GGUF file`);
  throw new InvalidInputError(`${where} has several GGUF files, name one of: ${found.join(', ')}`);
}
