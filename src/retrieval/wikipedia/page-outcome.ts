// What a page of a dump becomes, and how much it may take.

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
