// The prompt files of config/prompts: instruction and observation form of each method. Texts are used as
// they stand, byte for byte, because checkpoints are sensitive to the wording they were trained with.

import { readFileSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { packageRoot, type RolloutConfig } from '../config/index.js';
import { ConfigError } from '../errors.js';
import { sha256Hex } from '../util/digest.js';

const holes = (text: string, name: string): number => text.split(`{${name}}`).length - 1;

const template = (...names: string[]) =>
  z.string().refine((text) => names.every((name) => holes(text, name) === 1), {
    error: `expected each of ${names.map((name) => `{${name}}`).join(', ')} exactly once`,
  });

const passageForm = {
  passage: template('text').describe('One passage; may also hold {index} (from 1) and {title}.'),
  passageWords: z
    .number()
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Words of a passage that are shown; null shows all.'),
  none: z.string().min(1).describe('Stands in place of the passages when a search finds none.'),
};

const forcedForm = {
  budget: z.string().describe('Said before an answer is forced; may be empty.'),
  forcedAnswer: z
    .string()
    .refine((text) => text.includes('<answer>'), { error: 'expected it to open the answer with <answer>' })
    .describe('Opens an answer when none came.'),
  noAnswer: z.string().min(1).describe('Shown when the policy leaves its answer empty.'),
};

const searchR1 = z.strictObject({
  method: z.literal('search-r1'),
  instruction: template('question').describe('The last user turn.'),
  observation: z.strictObject({
    prefix: z.string().min(1),
    ...passageForm,
    suffix: z.string().min(1),
    corrective: z.string().min(1).describe('Answers an action that was not understood.'),
    failure: z.string().min(1).describe('Answers a search that failed.'),
    ...forcedForm,
  }),
});

const rag = z.strictObject({
  method: z.literal('rag'),
  instruction: template('passages', 'question'),
  observation: z.strictObject({ ...passageForm, failure: z.string().min(1) }),
});

const cot = z.strictObject({
  method: z.literal('cot'),
  instruction: template('question'),
  observation: z.strictObject(forcedForm),
});

const direct = z.strictObject({ method: z.literal('direct'), instruction: template('question') });

const promptFile = z.discriminatedUnion('method', [searchR1, rag, cot, direct]);

type PromptContent = z.infer<typeof promptFile>;

/** A prompt file's content and the sha256 of its bytes. */
export type Prompt<M extends PromptContent['method']> = Extract<PromptContent, { method: M }> & {
  readonly digest: string;
};

/** How one passage is written. */
export interface PassageForm {
  readonly passage: string;
  readonly passageWords: number | null;
  readonly none: string;
}

export interface ForcedForm {
  readonly budget: string;
  readonly forcedAnswer: string;
  readonly noAnswer: string;
}

export interface PromptSet {
  readonly searchR1: Prompt<'search-r1'>;
  readonly rag: Prompt<'rag'>;
  readonly cot: Prompt<'cot'>;
  readonly direct: Prompt<'direct'>;
}

/**
 * Checks the text of a prompt file.
 * @throws {ConfigError} naming the file, each wrong or unknown key, and what was expected
 */
export function parsePrompt<M extends PromptContent['method']>(
  method: M,
  yaml: string,
  file: string,
): Prompt<M> {
  let value: unknown;
  try {
    value = parseYaml(yaml);
  } catch (cause) {
    throw new ConfigError(`prompt file ${file} is not YAML: ${(cause as Error).message}`, { cause });
  }
  const parsed = promptFile.safeParse(value);
  if (!parsed.success)
    throw new ConfigError(`prompt file ${file} is not valid:\n${z.prettifyError(parsed.error)}`);
  if (parsed.data.method !== method)
    throw new ConfigError(`prompt file ${file}: expected method "${method}", got "${parsed.data.method}"`);
  return { ...parsed.data, digest: sha256Hex(yaml) } as Prompt<M>;
}

/** @param name a file's name in config/prompts without its ending, or a path */
function readPrompt<M extends PromptContent['method']>(method: M, name: string): Prompt<M> {
  const isPath = isAbsolute(name) || /[\\/]|\.ya?ml$/.test(name);
  const file = isPath ? resolve(name) : join(packageRoot, 'config', 'prompts', `${name}.yaml`);
  let yaml: string;
  try {
    yaml = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new ConfigError(`cannot read prompt file ${file}: ${(cause as Error).message}`, { cause });
  }
  return parsePrompt(method, yaml, file);
}

/**
 * The prompts of all methods; `rollout.prompt` names the one of search-r1.
 * @throws {ConfigError} a file is missing or not valid
 */
export function loadPrompts(config: Pick<RolloutConfig, 'prompt'>): PromptSet {
  return {
    searchR1: readPrompt('search-r1', config.prompt),
    rag: readPrompt('rag', 'rag'),
    cot: readPrompt('cot', 'cot'),
    direct: readPrompt('direct', 'direct'),
  };
}

/** Puts values into the holes of a template, in one pass: a hole inside a value stays as it is. */
export function fillTemplate(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{([a-z]+)\}/g, (hole, name: string) =>
    Object.hasOwn(values, name) ? (values[name] as string) : hole,
  );
}
