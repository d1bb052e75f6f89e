import { InvalidInputError } from '../../errors.js';
import { parsePage } from './page-xml.js';
import { wikitextPassages } from './wikitext.js';

/** What became of a page. Plain data: it comes from worker threads. */
export type PageOutcome =
  | {
      readonly kind: 'passages';
      readonly id: string;
      readonly title: string;
      /** Empty for pages that are no article: other namespaces, redirects, other content models. */
      readonly texts: readonly string[];
    }
  /** The page cannot be turned into text within the limits. */
  | { readonly kind: 'leftOut'; readonly reason: string }
  /** The page breaks the format. */
  | { readonly kind: 'bad'; readonly reason: string };

export interface PageLimits {
  /** Largest page, in bytes of XML. MediaWiki itself lets nobody save more than 2 MiB of text. */
  readonly maxPageBytes: number;
  /** Longest time for the wikitext of one page. */
  readonly timeoutMs: number;
}

export const PAGE_LIMITS: PageLimits = { maxPageBytes: 4 * 1024 * 1024, timeoutMs: 15_000 };

/** @param where  place for messages */
export function readPage(bytes: Uint8Array, where: string, timeoutMs: number): PageOutcome {
  try {
    const { id, title, namespace, isRedirect, model, text } = parsePage(bytes, where);
    if (namespace !== 0 || isRedirect || model !== 'wikitext')
      return { kind: 'passages', id, title, texts: [] };
    const texts = wikitextPassages(text, title, timeoutMs);
    if (texts !== null) return { kind: 'passages', id, title, texts };
    return { kind: 'leftOut', reason: `${where}: its wikitext could not be read within ${timeoutMs} ms` };
  } catch (error) {
    if (error instanceof InvalidInputError) return { kind: 'bad', reason: error.message };
    throw error;
  }
}
