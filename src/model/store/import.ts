// Imports a model from a manifest's files, a folder, a single file, or a repository of the hub.

import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { FileFormatError, InvalidInputError, UnsupportedError } from '../../errors.js';
import { tokenizerFromGguf } from '../../tokenizer/index.js';
import { jsonObject, readJsonFileSync } from '../../util/json-file.js';
import type { OnProgress } from '../../util/progress.js';
import {
  type FileRole,
  findManifest,
  isGguf,
  type ModelManifest,
  manifestIds,
  modelIdSchema,
  openGguf,
  type PullOptions,
  parseHubReference,
  pullModel,
  pullRepository,
  selectModelFiles,
} from '../../weights/index.js';
import { checkModel } from './check.js';
import { type GivenConventions, readConventions } from './conventions.js';
import { kindOf } from './describe.js';
import { openModel, type StoredModel } from './open.js';
import { placeModel, type SourceFile } from './place.js';

export interface ImportOptions extends PullOptions {
  readonly onProgress?: OnProgress;
  /** Name of the model here; absent: made from the source's name. */
  readonly id?: string | undefined;
  /** For encoders: wins over what the model's files say. */
  readonly embedder?: GivenConventions;
}

/** Files of one model and what is known about it from outside. */
interface Candidate {
  readonly files: readonly SourceFile[];
  readonly id: string;
  readonly title: string;
  readonly licence: string | null;
  readonly origin: string;
  readonly embedder: GivenConventions;
}

/** Roles that a model folder keeps; the others only say how an embedder is used. */
const KEPT: ReadonlySet<FileRole> = new Set([
  'weights',
  'weightsIndex',
  'config',
  'generationConfig',
  'tokenizer',
  'tokenizerConfig',
  'chatTemplate',
]);

/**
 * Imports from whatever `source` names: a manifest's id, a folder, a .gguf or .safetensors file, or a hub
 * reference (`owner/name`, `owner/name@revision`, `owner/name/file.gguf`).
 * @param home the folder of `homeFolder(config)`
 * @throws {UnsupportedError} an architecture, tokenizer or tensor type that is not supported
 */
export async function importModel(
  source: string,
  home: string,
  options: ImportOptions = {},
): Promise<StoredModel> {
  if (existsSync(source)) return importPath(resolve(source), home, options);
  if (manifestIds().includes(source)) return importManifest(findManifest(source), home, options);
  const reference = parseHubReference(source);
  if (reference === null)
    throw new InvalidInputError(
      `"${source}" is no folder or file here, no manifest (${manifestIds().join(', ')}) and no hub id (owner/name)`,
    );
  const pulled = await pullRepository(reference, home, options);
  const name = reference.file === null ? reference.repo : reference.file;
  return place(home, options, {
    files: pulled.files.map(({ path, role, file, sha256 }) => ({
      name: basename(path),
      role,
      from: { kind: 'cache', file, sha256 },
    })),
    id: options.id ?? idFrom(basename(name, '.gguf')),
    title: `${reference.repo}${reference.file === null ? '' : `/${reference.file}`}`,
    licence: null,
    origin: `hub ${pulled.repo} at ${pulled.revision}`,
    embedder: options.embedder ?? {},
  });
}

/** Makes sure that a model is there: an imported one is opened, one with a manifest is fetched and imported. */
export async function ensureModel(
  id: string,
  home: string,
  options: ImportOptions = {},
): Promise<StoredModel> {
  const there = await openModel(home, id).catch((error) => {
    if (manifestIds().includes(id)) return null;
    throw error;
  });
  return there ?? importManifest(findManifest(id), home, options);
}

/** Fetches a manifest's files and imports them under the manifest's id (or `options.id`). */
export async function importManifest(
  manifest: ModelManifest,
  home: string,
  options: ImportOptions = {},
): Promise<StoredModel> {
  const pulled = await pullModel(manifest, home, options);
  return place(home, options, {
    files: pulled.map(({ path, role, file, sha256 }) => ({
      name: basename(path),
      role,
      from: { kind: 'cache', file, sha256 },
    })),
    id: options.id ?? manifest.id,
    title: manifest.title,
    licence: manifest.licence,
    origin: `manifest ${manifest.id}`,
    embedder: { ...manifest.embedder, ...options.embedder },
  });
}

async function importPath(path: string, home: string, options: ImportOptions): Promise<StoredModel> {
  const isFolder = statSync(path).isDirectory();
  const files = isFolder ? folderFiles(path) : singleFile(path);
  const name = basename(path, isFolder ? '' : extname(path));
  const shown = isFolder || !/^model$/.test(name) ? name : basename(dirname(path));
  return place(home, options, {
    files,
    id: options.id ?? idFrom(shown),
    title: shown,
    licence: null,
    origin: `${isFolder ? 'folder' : 'file'} ${basename(path)}`,
    embedder: options.embedder ?? {},
  });
}

function folderFiles(folder: string): SourceFile[] {
  const paths = [...readdirSync(folder), '1_Pooling/config.json'].filter((name) =>
    statSync(join(folder, name), { throwIfNoEntry: false })?.isFile(),
  );
  const selected = selectModelFiles(paths);
  if (selected) return selected.map(({ path, role }) => userFile(join(folder, path), role));
  const ggufs = paths.filter((name) => name.endsWith('.gguf'));
  if (ggufs.length === 1) return singleFile(join(folder, ggufs[0] as string));
  throw new InvalidInputError(
    ggufs.length > 1
      ? `${folder} holds several GGUF files, name one of: ${ggufs.join(', ')}`
      : `${folder} holds no model.safetensors, model.safetensors.index.json or GGUF file`,
  );
}

/** A GGUF file stands alone; a safetensors file takes config and tokenizer from the folder it lies in. */
function singleFile(path: string): SourceFile[] {
  if (isGguf(path)) return [userFile(path, 'weights')];
  if (!path.endsWith('.safetensors'))
    throw new InvalidInputError(`${path} is neither a GGUF nor a .safetensors file`);
  const folder = dirname(path);
  const beside = readdirSync(folder).filter((name) => !/\.(safetensors|index\.json|gguf)$/.test(name));
  const pooling = '1_Pooling/config.json';
  const others = selectModelFiles([
    ...beside,
    ...(existsSync(join(folder, pooling)) ? [pooling] : []),
    'model.safetensors',
  ]) as NonNullable<ReturnType<typeof selectModelFiles>>;
  return others.map(({ path: name, role }) =>
    role === 'weights' ? userFile(path, role) : userFile(join(folder, name), role),
  );
}

const userFile = (file: string, role: FileRole): SourceFile => ({
  name: basename(file),
  role,
  from: { kind: 'user', file },
});

/** Lower-case letters, digits, `.`, `_` and `-`. */
function idFrom(name: string): string {
  const id = name
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, 96);
  if (!modelIdSchema.safeParse(id).success)
    throw new InvalidInputError(`"${name}" makes no model name; give one with --name`, 'name');
  return id;
}

async function place(home: string, options: ImportOptions, candidate: Candidate): Promise<StoredModel> {
  if (!modelIdSchema.safeParse(candidate.id).success)
    throw new InvalidInputError(
      `model name "${candidate.id}": expected lower-case letters, digits, ".", "_" and "-"`,
      'name',
    );
  const paths = new Map<FileRole, string>();
  for (const { role, from } of candidate.files) if (from.kind !== 'text') paths.set(role, from.file);
  const weights = paths.get('weights');
  if (weights === undefined) throw new FileFormatError(`${candidate.title}: no weights`);
  const gguf = isGguf(weights);
  const described = gguf ? describeGguf(weights) : describeFolder(paths, candidate.title);
  const embedder = described.kind === 'encoder' ? await readConventions(paths, candidate.embedder) : null;
  const files = [...candidate.files.filter(({ role }) => KEPT.has(role)), ...described.made];
  return placeModel(
    home,
    {
      id: candidate.id,
      title: candidate.title,
      kind: described.kind,
      architecture: described.architecture,
      licence: candidate.licence ?? described.licence,
      origin: candidate.origin,
      format: gguf ? 'gguf' : 'safetensors',
      embedder,
    },
    files,
    { ...options, check: checkModel },
  );
}

interface Described {
  readonly kind: 'decoder' | 'encoder';
  readonly architecture: string;
  readonly licence: string | null;
  readonly made: readonly SourceFile[];
}

function describeGguf(weights: string): Described {
  const source = openGguf(weights);
  try {
    const { metadata } = source;
    const architecture = metadata.get('general.architecture');
    const kind = kindOf(architecture, 'gguf', basename(weights));
    const { tokenizerJson, tokenizerConfig, chatTemplate } = tokenizerFromGguf(metadata);
    const made: SourceFile[] = [madeFile('tokenizer.json', 'tokenizer', JSON.stringify(tokenizerJson))];
    if (tokenizerConfig !== undefined)
      made.push(madeFile('tokenizer_config.json', 'tokenizerConfig', JSON.stringify(tokenizerConfig)));
    if (chatTemplate !== undefined) made.push(madeFile('chat_template.jinja', 'chatTemplate', chatTemplate));
    const licence = metadata.get('general.license');
    return {
      kind,
      architecture: String(architecture),
      licence: typeof licence === 'string' ? licence : null,
      made,
    };
  } finally {
    source.close();
  }
}

const madeFile = (name: string, role: FileRole, text: string): SourceFile => ({
  name,
  role,
  from: { kind: 'text', text },
});

function describeFolder(paths: ReadonlyMap<FileRole, string>, title: string): Described {
  const config = paths.get('config');
  if (config === undefined) throw new FileFormatError(`${title}: no config.json beside the weights`);
  if (!paths.has('tokenizer'))
    throw new UnsupportedError(`${title}: no tokenizer.json; other tokenizer files are not supported`);
  const architecture = readJsonFileSync(config, jsonObject).model_type;
  const kind = kindOf(architecture, 'safetensors', `${title}, config.json`);
  return { kind, architecture: String(architecture), licence: null, made: [] };
}
