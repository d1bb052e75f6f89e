import { basename } from 'node:path';
import { DownloadError, InvalidInputError, NotFoundError } from '../../errors.js';
import { escapeRegExp } from '../../util/escape-reg-exp.js';
import { fetchText, locateHttpFile, locateHubFile, type RemoteFile } from '../../weights/index.js';
import type { Corpus, DumpSource } from './corpus.js';

const LATEST = 'latest';
const DATE = /^\d{8}$/;

export interface CorpusPlace {
  /** Another mirror of Wikimedia's dumps. */
  readonly mirror?: string;
  /** Dump of this date (YYYYMMDD); default: the latest one. */
  readonly date?: string;
  readonly signal?: AbortSignal;
}

/**
 * Where a corpus can be fetched now, with size and sum.
 * @throws {NotFoundError} the server does not have it; {DownloadError} the server fails
 * @throws {InvalidInputError} a mirror or date that cannot be used
 */
export async function locateCorpus(corpus: Corpus, place: CorpusPlace = {}): Promise<RemoteFile> {
  const { source } = corpus;
  if (source.type === 'dump') return locateDump(source, place);
  if (place.mirror !== undefined || place.date !== undefined)
    throw new InvalidInputError(
      `corpus "${corpus.id}" comes from the model hub: it has no dumps by date, and HF_ENDPOINT names its mirror`,
    );
  const { repo, revision, file } = source;
  return locateHubFile({ repo, revision, path: file }, { signal: place.signal });
}

/**
 * The list of sums under "latest" names files by their date. That date is fetched, so that a transfer which is
 * continued later continues the same dump.
 */
async function locateDump(source: DumpSource, { mirror, date, signal }: CorpusPlace): Promise<RemoteFile> {
  if (date !== undefined && !DATE.test(date))
    throw new InvalidInputError(`expected the date of a dump as YYYYMMDD, came "${date}"`, 'date');
  const base = mirrorAddress(mirror ?? source.mirror);
  const sumsAddress = new URL(source.sums.replaceAll('{date}', date ?? LATEST), base);
  const sums = await fetchText(sumsAddress, signal);
  const wanted = new RegExp(
    `^${escapeRegExp(basename(source.file)).replaceAll('\\{date\\}', date ?? '(\\d{8})')}$`,
  );
  for (const line of sums.split('\n')) {
    const [, hex, name] = /^([0-9a-f]{40}) [ *](\S+)\s*$/i.exec(line) ?? [];
    const match = wanted.exec(name ?? '');
    if (hex === undefined || match === null) continue;
    const file = source.file.replaceAll('{date}', date ?? (match[1] as string));
    return locateHttpFile(new URL(file, base), { algorithm: 'sha1', hex: hex.toLowerCase() }, { signal });
  }
  const what = basename(source.file).replaceAll('{date}', date ?? 'YYYYMMDD');
  if (!/^[0-9a-f]{40} /im.test(sums)) throw new DownloadError(`${sumsAddress}: expected a list of sha1 sums`);
  throw new NotFoundError(
    `${sumsAddress} lists no ${what}; a dump may be in the making: try --date with an earlier one`,
  );
}

function mirrorAddress(mirror: string): URL {
  const text = `${mirror.replace(/\/+$/, '')}/`;
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new InvalidInputError(`expected the http or https address of a mirror, came "${mirror}"`, 'mirror');
  return new URL(text);
}
