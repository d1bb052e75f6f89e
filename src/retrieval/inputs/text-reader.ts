import { readdir, stat } from 'node:fs/promises';
import { basename, extname, join, relative, sep } from 'node:path';
import { InvalidInputError } from '../../errors.js';
import { sha256Hex } from '../../util/digest.js';
import { readLines } from '../../util/lines.js';
import type { PassageInput } from '../passages/passage-store.js';
import { endsDigest } from './fingerprint.js';
import { createPassageSplitter } from './passage-splitter.js';
import type { PassageReader, ReaderKind, ReadOptions, ReadPassage } from './reader.js';

interface TextFile {
  readonly path: string;
  /** Below the input folder, with forward slashes. */
  readonly name: string;
  readonly bytes: number;
}

/** A text without blank lines is still read with bounded memory. */
const MAX_PARAGRAPH_LINES = 500;
const TEXT_FILE = /\.(txt|md|markdown)$/i;

/** Text and Markdown files, one or a folder of them, cut into passages of about 100 words. */
export const textReader: ReaderKind = {
  kind: 'text',
  description: 'a .txt or .md file, or a folder of such files',
  accepts: ({ path, isFolder }) => isFolder || TEXT_FILE.test(path),
  open: async (path): Promise<PassageReader> => {
    const files = await listTextFiles(path);
    if (files.length === 0)
      throw new InvalidInputError(`input ${path}: expected .txt or .md files in the folder, found none`);
    const listing: [name: string, bytes: number, ends: string][] = [];
    for (const { path: file, name, bytes } of files)
      listing.push([name, bytes, await endsDigest(file, bytes)]);
    return {
      kind: 'text',
      fingerprint: `${path} (${files.length} files, listing ${sha256Hex(JSON.stringify(listing)).slice(0, 16)})`,
      totalBytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
      read: (options) => readFiles(files, options),
    };
  },
};

/** Files in the order of their names; hidden ones and links are left out, so nothing outside the folder is read. */
async function listTextFiles(root: string): Promise<TextFile[]> {
  const rootStat = await stat(root);
  if (!rootStat.isDirectory()) return [{ path: root, name: basename(root), bytes: rootStat.size }];
  const files: TextFile[] = [];
  const walk = async (folder: string): Promise<void> => {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.name.startsWith('.')) continue;
      if (entry.isDirectory()) await walk(path);
      else if (entry.isFile() && TEXT_FILE.test(entry.name)) {
        const { size } = await stat(path);
        files.push({ path, name: relative(root, path).split(sep).join('/'), bytes: size });
      }
    }
  };
  await walk(root);
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A position is the file and how many of its passages are done; that file is read again up to there. */
async function* readFiles(files: readonly TextFile[], options: ReadOptions): AsyncGenerator<ReadPassage> {
  const start = {
    file: Number(options.from?.['file'] ?? 0),
    passage: Number(options.from?.['passage'] ?? 0),
  };
  let before = files.slice(0, start.file).reduce((sum, { bytes }) => sum + bytes, 0);
  for (let i = start.file; i < files.length; i++) {
    const file = files[i] as TextFile;
    let number = 0;
    for await (const { title, text, line, fileBytes } of readPassages(file, options.signal)) {
      number++;
      if (i === start.file && number <= start.passage) continue;
      const passage: PassageInput = { id: `${file.name}#${number}`, title, text };
      const position = { file: i, passage: number };
      yield { passage, where: `${file.path}:${line}`, position, bytes: before + fileBytes };
    }
    before += file.bytes;
  }
}

interface TextPassage {
  readonly title: string;
  readonly text: string;
  readonly line: number;
  readonly fileBytes: number;
}

/**
 * The title is the first heading, else the file's name; passages below a later heading carry both. A passage
 * never crosses a heading.
 */
async function* readPassages(file: TextFile, signal: AbortSignal | undefined): AsyncGenerator<TextPassage> {
  const markdown = extname(file.path).toLowerCase() !== '.txt';
  const splitter = createPassageSplitter();
  const decoder = new TextDecoder();
  let document = basename(file.path, extname(file.path));
  let named = false;
  let section = '';
  let paragraph: string[] = [];
  let fenced = false;
  let line = 0;
  let fileBytes = 0;
  const passages = (texts: string[]): TextPassage[] =>
    texts.map((text) => ({
      title: section === '' ? document : `${document}: ${section}`,
      text,
      line,
      fileBytes,
    }));
  const closeParagraph = (): TextPassage[] => {
    const text = paragraph.join(' ').replace(/\s+/g, ' ').trim();
    paragraph = [];
    return text === '' ? [] : passages(splitter.add(text));
  };
  for await (const read of readLines(file.path, { signal })) {
    const text = decoder.decode(read.bytes);
    if (markdown && /^\s*(```|~~~)/.test(text)) fenced = !fenced;
    const heading = markdown && !fenced ? /^#{1,6}\s+(.+?)\s*#*\s*$/.exec(text)?.[1] : undefined;
    if (heading !== undefined || text.trim() === '') yield* closeParagraph();
    ({ number: line, fileBytes } = read);
    if (heading !== undefined) {
      yield* passages(splitter.end());
      if (named) section = heading;
      else document = heading;
      named = true;
    } else if (text.trim() !== '') paragraph.push(text.trim());
    if (paragraph.length >= MAX_PARAGRAPH_LINES) yield* closeParagraph();
  }
  yield* closeParagraph();
  yield* passages(splitter.end());
}
