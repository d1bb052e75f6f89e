import type { Citation } from '../../rollout/index.js';
import { wellFormed } from '../../util/well-formed.js';

export interface Annotation {
  readonly type: 'url_citation';
  readonly url_citation: {
    /** UTF-16 offsets in the message's content. */
    readonly start_index: number;
    readonly end_index: number;
    readonly url: string;
    readonly title: string;
  };
}

/** Citations with addresses made of `baseUrl` and the passage's id, percent-encoded (half a character would make the encoder throw). */
export function annotationsOf(citations: readonly Citation[], baseUrl: string): Annotation[] {
  return citations.map(({ passage, start, end }) => ({
    type: 'url_citation',
    url_citation: {
      start_index: start,
      end_index: end,
      url: `${baseUrl}${encodeURIComponent(wellFormed(passage.id))}`,
      title: passage.title,
    },
  }));
}
