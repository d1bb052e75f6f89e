// Searches inside the reasoning text, for clients that show reasoning and know nothing of searches.

import type { RolloutEvent } from '../../rollout/index.js';

type SearchEvent = Extract<RolloutEvent, { type: 'search.query' | 'search.results' }>;

/** Characters of a passage that are shown; the `searchloop` field has all of it. */
const EXCERPT = 200;

export function searchText(event: SearchEvent): string {
  if (event.type === 'search.query') return `\n\nSearch: ${plain(event.query)}\n`;
  if (event.error !== null) return 'The search failed.\n\n';
  if (event.passages.length === 0) return 'Nothing was found.\n\n';
  const lines = event.passages.map(
    (passage, index) =>
      `[${index + 1}] ${plain(passage.title)}: ${excerpt(plain(passage.text.slice(0, 4 * EXCERPT)))}\n`,
  );
  return `${lines.join('')}\n`;
}

/** One line, tags disarmed: some frontends look for tags in any text that a server sends. */
function plain(text: string): string {
  return text
    .replace(/\s+/gu, ' ')
    .trim()
    .replace(/<(?=[\p{L}/|!?])/gu, '&lt;');
}

function excerpt(text: string): string {
  if (text.length <= EXCERPT) return text;
  return `${text.slice(0, EXCERPT).replace(/[\uD800-\uDBFF]$/, '')}...`;
}
