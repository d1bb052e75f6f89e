import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Language models of which everything is stored: weights, adapters, logits, gradients, tokens. */
export const DECODERS = ['tiny-llama', 'tiny-llama-rope3', 'tiny-qwen2', 'tiny-qwen3'] as const;

/** Path of a stored file or folder of test/fixtures. */
export const fixture = (...path: string[]): string => join(__dirname, '..', 'fixtures', ...path);

/** A stored JSON file. */
export const readJson = (...path: string[]) => JSON.parse(readFileSync(fixture(...path), 'utf8'));
