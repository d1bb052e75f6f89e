// The folder of an evaluation: settings.json, results.jsonl, transcripts.jsonl. One process at a time writes it.

import { join } from 'node:path';
import { z } from 'zod';
import { IntegrityError, NotFoundError } from '../errors.js';
import { canonicalJson, sha256Hex } from '../util/digest.js';
import { readJsonFileIfAny, writeJsonFile } from '../util/json-file.js';
import { openJsonLines, parsedJsonLines } from '../util/json-lines.js';
import { claim } from '../weights/index.js';
import { type Question, questionDigest } from './questions.js';
import { answerKey, type QuestionResult, questionResult } from './result.js';
import { type StoredTranscript, type Transcript, transcript } from './transcript.js';

/** Digest of the settings of an evaluation: what every number of it carries. */
export const settingsDigest = (settings: Readonly<Record<string, unknown>>): string =>
  sha256Hex(canonicalJson(settings));

export interface EvaluationFolder {
  /** Results of earlier runs that still answer what is asked, by their answer keys. */
  readonly known: ReadonlyMap<string, QuestionResult>;
  append(result: QuestionResult, transcript: Transcript): Promise<void>;
  /** Closes the files and gives the folder back. */
  close(): Promise<void>;
}

/** A question to answer, as a numbered sample where there are several. */
export interface Asked {
  readonly question: Question;
  readonly sample?: number;
}

export interface OpenFolderOptions {
  readonly settings: Readonly<Record<string, unknown>>;
  readonly asked: readonly Asked[];
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Takes the folder; waits while another process has it.
 * @throws {IntegrityError} it was begun with other settings; the message holds both digests
 * @throws {CancelledError} on abort
 */
export async function openFolder(folder: string, options: OpenFolderOptions): Promise<EvaluationFolder> {
  const { settings, asked, onNote, signal } = options;
  const held = await claim({
    folder,
    key: '.running',
    kind: 'file',
    onWait: () => onNote?.(`another process evaluates in ${folder}; waiting for it to end`),
    signal,
  });
  try {
    await keepSettings(folder, settings);
    const known = stillAnswering(asked, await readResults(folder), (text) => onNote?.(`${folder}: ${text}`));
    const transcripts = await openJsonLines(join(folder, TRANSCRIPTS));
    const results = await openJsonLines(join(folder, RESULTS));
    return {
      known,
      async append(result, transcript) {
        await transcripts.append(transcript);
        await results.append(result);
      },
      async close() {
        try {
          await Promise.all([results.close(), transcripts.close()]);
        } finally {
          await held.release(true);
        }
      },
    };
  } catch (error) {
    await held.release(true);
    throw error;
  }
}

const RESULTS = 'results.jsonl';
const TRANSCRIPTS = 'transcripts.jsonl';

async function keepSettings(folder: string, settings: Readonly<Record<string, unknown>>): Promise<void> {
  const digest = settingsDigest(settings);
  const known = await readSettings(folder);
  if (known === null) {
    return writeJsonFile(join(folder, 'settings.json'), { digest, settings });
  }
  if (known.digest !== digest)
    throw new IntegrityError(
      `${folder} holds results of other settings: their digest is ${known.digest}, that of this run ${digest}; name another folder`,
    );
}

/** Results whose question and gold answers are those of now; what has changed under its id is asked again. */
function stillAnswering(
  asked: readonly Asked[],
  results: readonly QuestionResult[],
  onNote: (text: string) => void,
): Map<string, QuestionResult> {
  const found = new Map(results.map((result) => [answerKey(result), result]));
  const known = new Map<string, QuestionResult>();
  let [changed, unnamed] = [0, 0];
  for (const { question, sample } of asked) {
    const key = answerKey({ id: question.id, sample });
    const result = found.get(key);
    if (result === undefined) continue;
    if (result.questionDigest === questionDigest(question)) known.set(key, result);
    else if (result.questionDigest === undefined) unnamed += 1;
    else changed += 1;
  }
  if (changed > 0) onNote(`asked again, since question or gold answers have changed: ${changed}`);
  if (unnamed > 0) onNote(`asked again, since their results do not tell what was asked: ${unnamed}`);
  return known;
}

const evaluationSettings = z.strictObject({
  digest: z.string(),
  settings: z.record(z.string(), z.unknown()),
});

export type EvaluationSettings = z.infer<typeof evaluationSettings>;

/** Settings of a folder of results; null where there are none. */
export function readSettings(folder: string): Promise<EvaluationSettings | null> {
  return readJsonFileIfAny(join(folder, 'settings.json'), evaluationSettings);
}

/** Results in a folder, in the order in which they came; of a question (or sample) that was asked again, the last one. */
export async function readResults(folder: string): Promise<QuestionResult[]> {
  const results = new Map<string, QuestionResult>();
  const path = join(folder, RESULTS);
  try {
    for await (const result of parsedJsonLines(path, questionResult)) {
      const key = answerKey(result);
      results.delete(key);
      results.set(key, result);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  return [...results.values()];
}

/**
 * Transcripts in a folder; of a question that was asked again, the last one.
 * @throws {NotFoundError} there are none
 * @throws {FileFormatError} naming the line
 */
export async function readTranscripts(folder: string): Promise<StoredTranscript[]> {
  const path = join(folder, TRANSCRIPTS);
  const transcripts = new Map<string, Transcript>();
  try {
    for await (const item of parsedJsonLines(path, transcript)) transcripts.set(answerKey(item), item);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new NotFoundError(`no transcripts of an evaluation in ${folder}`, { cause: error });
    throw error;
  }
  const stops = new Map((await readResults(folder)).map((result) => [answerKey(result), result.stop]));
  return [...transcripts].map(([key, item]) => ({ ...item, stop: stops.get(key) ?? null }));
}
