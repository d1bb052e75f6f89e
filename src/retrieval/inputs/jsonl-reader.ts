import { stat } from 'node:fs/promises';
import { readLines } from '../../util/lines.js';
import type { PassageInput } from '../passages/passage-store.js';
import { fileFingerprint } from './fingerprint.js';
import { parsePassageLine } from './passage-line.js';
import type { PassageReader, ReaderKind, ReadOptions, ReadPassage } from './reader.js';

/** Corpus files with one JSON object a line. Blank lines are skipped. */
export const jsonlReader: ReaderKind = {
  kind: 'jsonl',
  description: 'a .jsonl or .ndjson file of {"id","contents"} or {"id","title","text"} lines, plain or .gz',
  accepts: ({ path, isFolder }) => !isFolder && /\.(jsonl|ndjson|json)(\.gz)?$/i.test(path),
  open: async (path): Promise<PassageReader> => {
    const { size } = await stat(path);
    return {
      kind: 'jsonl',
      fingerprint: await fileFingerprint(path, size),
      totalBytes: size,
      read: (options) => readPassages(path, options),
    };
  },
};

async function* readPassages(path: string, options: ReadOptions): AsyncGenerator<ReadPassage> {
  const from = options.from && { byte: Number(options.from['byte']), line: Number(options.from['line']) };
  for await (const line of readLines(path, { from: from ?? undefined, signal: options.signal })) {
    if (line.bytes.length === 0) continue;
    const where = `${path}:${line.number}`;
    let passage: PassageInput;
    try {
      passage = parsePassageLine(line.bytes, where);
    } catch (error) {
      options.onBad(error as Error);
      continue;
    }
    yield { passage, where, position: { byte: line.end, line: line.number }, bytes: line.fileBytes };
  }
}
