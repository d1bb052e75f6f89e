// One page of a dump, read in a thread of the pool: the parser of wikitext is loaded there only.

import { InvalidInputError } from '../../errors.js';
import type { PageOutcome } from './page-outcome.js';
import { parsePage } from './page-xml.js';
import { wikitextPassages } from './wikitext.js';

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
