// Tokenizers of the fixture models, and the values that tokenizers, transformers and llama.cpp gave for them.

import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { createTokenizer, tokenizerFromGguf } from '../../src/tokenizer/index.js';
import type { ChatMessage, Tokenizer } from '../../src/tokenizer/tokenizer.js';
import { fixture } from '../support/fixtures.js';

export function readJson<T>(...path: string[]): T {
  const bytes = readFileSync(fixture(...path));
  return JSON.parse((path.at(-1)?.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')) as T;
}

export interface TokenCase {
  readonly text: string;
  readonly ids: number[];
  readonly idsPlain?: number[];
  readonly idsWithTemplate?: number[];
  readonly decoded?: string;
  readonly decodedSkippingSpecial?: string;
}

export interface ChatCase {
  readonly messages: ChatMessage[];
  readonly addGenerationPrompt: boolean;
  readonly text: string;
  readonly ids: number[];
}

export interface TokenOracle {
  readonly cases: TokenCase[];
  readonly chats: ChatCase[];
}

export const oracle = (model: string): TokenOracle => readJson('forward', 'tokens', `${model}.json`);

export function modelTokenizer(model: string): Tokenizer {
  const template = fixture('models', model, 'chat_template.jinja');
  return createTokenizer({
    tokenizerJson: readJson('models', model, 'tokenizer.json'),
    tokenizerConfig: readJson('models', model, 'tokenizer_config.json'),
    chatTemplate: existsSync(template) ? readFileSync(template, 'utf8') : undefined,
  });
}

export function minilmTokenizer(): Tokenizer {
  return createTokenizer({
    tokenizerJson: readJson('minilm', 'tokenizer.json.gz'),
    tokenizerConfig: readJson('minilm', 'tokenizer_config.json'),
  });
}

/** Tokenizer metadata of a SmolLM2-135M-Instruct GGUF file (Apache-2.0). */
export const smollm2Metadata = (): Map<string, unknown> =>
  new Map(Object.entries(readJson<Record<string, unknown>>('smollm2', 'tokenizer-metadata.json.gz')));

export const smollm2Tokenizer = (): Tokenizer => createTokenizer(tokenizerFromGguf(smollm2Metadata()));
