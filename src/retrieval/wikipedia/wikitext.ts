import { createContext, Script } from 'node:vm';
import wtf from 'wtf_wikipedia';
import { createPassageSplitter, PASSAGE_WORDS } from '../inputs/passage-splitter.js';

/** Sections that hold references and links only, in the English Wikipedias. */
const LEFT_OUT_SECTIONS = new Set([
  'bibliography',
  'citations',
  'external links',
  'footnotes',
  'further reading',
  'notes',
  'notes and references',
  'other websites',
  'references',
  'related pages',
  'see also',
  'sources',
]);
const BULLET = /^\s*\*\s+(?:\d+\)\s+)?/;
const LABELLED_LINK = /\[(?:https?:)?\/\/[^\s\]]+(?:\s+([^\]]*))?\]/g;
const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&amp;': '&',
};

/**
 * The running text of an article in passages of about 100 words. Templates, references, tables, pictures and
 * categories are taken out; items of lists stay.
 * @param timeoutMs  the parser is stopped after this long: some texts take it quadratic time
 * @returns null when the time was up, or the parser failed; [] for a redirect
 */
export function wikitextPassages(wikitext: string, title: string, timeoutMs: number): string[] | null {
  const paragraphs = stoppedAfter(timeoutMs, () => paragraphsOf(wikitext, title));
  if (paragraphs === null) return null;
  const splitter = createPassageSplitter(PASSAGE_WORDS);
  return [...paragraphs.flatMap((paragraph) => splitter.add(paragraph)), ...splitter.end()];
}

function paragraphsOf(wikitext: string, title: string): string[] {
  const document = wtf(wikitext, { title });
  if (document.isRedirect()) return [];
  return document
    .sections()
    .filter((section) => !LEFT_OUT_SECTIONS.has(section.title().trim().toLowerCase()))
    .flatMap((section) => section.text({}).split('\n'))
    .map((line) => tidy(line))
    .filter((line) => /[\p{L}\p{N}]/u.test(line));
}

function tidy(line: string): string {
  return line
    .replace(BULLET, '')
    .replace(LABELLED_LINK, '$1')
    .replace(/&(?:lt|gt|quot|amp);/g, (entity) => ENTITIES[entity] as string)
    .replace(/\s+/g, ' ')
    .trim();
}

const script = new Script('work()');
const box = createContext({ work: null });

/** Node stops a script after a time, and with it what it calls; a plain call could not be stopped. */
function stoppedAfter<T>(timeoutMs: number, work: () => T): T | null {
  box['work'] = work;
  try {
    return script.runInContext(box, { timeout: timeoutMs }) as T;
  } catch {
    return null;
  } finally {
    box['work'] = null;
  }
}
