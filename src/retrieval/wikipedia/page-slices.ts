// Cuts the text of a dump into the bytes of its pages. MediaWiki escapes "<" in all text and gives <page> no
// attributes, so the tags can be found as bytes; each page is then parsed as XML on its own, in any thread, and what
// stands around the pages is parsed here, so that the whole file is checked.

import { SaxesParser } from 'saxes';
import { FileFormatError } from '../../errors.js';
import type { DumpChunk, DumpPlace } from './dump-chunks.js';

const OPEN = Buffer.from('<page>');
const CLOSE = Buffer.from('</page>');
const ROOT = 'mediawiki';
const MAX_OUTSIDE_BYTES = 16 * 1024 * 1024;
const TITLE_SEARCH_BYTES = 4096;

export interface PageSlice {
  /** From `<page>` to `</page>`; null when the page is above the limit. */
  readonly bytes: Buffer | null;
  /** The title as it stands in the XML, for messages; "" when there is none near the start. */
  readonly title: string;
  /** Where `<page>` begins. */
  readonly place: DumpPlace;
  /** Bytes of the stored file read so far. */
  readonly fileBytes: number;
}

export interface SliceOptions {
  /** For messages. */
  readonly path: string;
  /** Largest page in bytes of XML. */
  readonly maxPageBytes: number;
  /** The chunks begin at a page, not at the start of the file. */
  readonly resumed: boolean;
}

/**
 * @throws {FileFormatError} no MediaWiki export, broken XML around the pages, or a file that ends too early
 */
export async function* slicePages(
  chunks: AsyncIterable<DumpChunk>,
  options: SliceOptions,
): AsyncGenerator<PageSlice> {
  const { path, maxPageBytes } = options;
  const outside = createOutsideParser(options);
  const text = createWindow();
  let page: { place: DumpPlace; title: string; tooLarge: boolean } | null = null;
  let last = '';
  for await (const chunk of chunks) {
    text.add(chunk);
    while (true) {
      if (page === null) {
        const at = text.find(OPEN);
        outside.write(text.take(at < 0 ? text.length - OPEN.length + 1 : at), last);
        if (at < 0) break;
        page = { place: text.place, title: '', tooLarge: false };
      }
      const at = text.find(CLOSE);
      if (at < 0) {
        page.title ||= titleIn(text.head(TITLE_SEARCH_BYTES));
        if (text.length > maxPageBytes) page.tooLarge = true;
        if (page.tooLarge) text.take(text.length - CLOSE.length + 1);
        break;
      }
      const bytes = text.take(at + CLOSE.length);
      const { place } = page;
      const title = page.title || titleIn(bytes.subarray(0, TITLE_SEARCH_BYTES));
      const tooLarge = page.tooLarge || bytes.length > maxPageBytes;
      page = null;
      last = title;
      yield { bytes: tooLarge ? null : bytes, title, place, fileBytes: chunk.fileBytes };
    }
  }
  if (page !== null) throw new FileFormatError(`${path}: the file ends inside page "${page.title}"`);
  outside.write(text.take(text.length), last);
  outside.close(last);
}

function titleIn(bytes: Buffer): string {
  return /<title>([^<]*)</.exec(bytes.toString('utf8'))?.[1] ?? '';
}

/** Text that was read and not yet used up, with the place of its first byte. */
function createWindow() {
  let held: Buffer = Buffer.alloc(0);
  /** Where parts of `held` come from; ends are from the start of `held`. */
  let parts: { end: number; place: DumpPlace }[] = [];
  /** The tag was not found before this. */
  let searched = 0;
  return {
    get length() {
      return held.length;
    },
    get place(): DumpPlace {
      return (parts[0] as { place: DumpPlace }).place;
    },
    add({ bytes, place }: DumpChunk): void {
      if (bytes.length === 0) return;
      held = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
      parts.push({ end: held.length, place });
    },
    find(tag: Buffer): number {
      const at = held.indexOf(tag, searched);
      searched = at >= 0 ? 0 : Math.max(0, held.length - tag.length + 1);
      return at;
    },
    head: (length: number): Buffer => held.subarray(0, length),
    take(count: number): Buffer {
      const taken = held.subarray(0, Math.max(0, count));
      held = held.subarray(taken.length);
      searched = Math.max(0, searched - taken.length);
      let start = 0;
      parts = parts.flatMap(({ end, place }) => {
        const skipped = Math.max(0, taken.length - start);
        start = end;
        if (end <= taken.length) return [];
        return [{ end: end - taken.length, place: { ...place, offset: place.offset + skipped } }];
      });
      return taken;
    },
  };
}

/** Parses what stands before, between and after the pages. */
function createOutsideParser({ path, resumed }: SliceOptions) {
  const parser = new SaxesParser();
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let root: string | null = null;
  let bytes = 0;
  const fail = (reason: string, last: string, cause?: unknown): never => {
    const where = last === '' ? 'before the first page' : `after page "${last}"`;
    throw new FileFormatError(`${path}: ${where}: ${reason}`, { cause });
  };
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name }) => {
    root ??= name;
  });
  const checked = (last: string, work: () => void): void => {
    try {
      work();
    } catch (error) {
      fail(`broken XML: ${(error as Error).message.replace(/^\d+:\d+: /, '')}`, last, error);
    }
    if (root !== null && root !== ROOT)
      fail(`expected a MediaWiki export, with <${ROOT}> as its outermost element, came <${root}>`, last);
  };
  if (resumed) parser.write(`<${ROOT}>`);
  let before = '';
  return {
    write(part: Buffer, last: string): void {
      if (last !== before) bytes = 0;
      before = last;
      bytes += part.length;
      if (bytes > MAX_OUTSIDE_BYTES) fail(`expected a page within ${MAX_OUTSIDE_BYTES} bytes`, last);
      checked(last, () => void parser.write(decoder.decode(part, { stream: true })));
    },
    close(last: string): void {
      checked(last, () => void parser.write(decoder.decode()).close());
    },
  };
}
