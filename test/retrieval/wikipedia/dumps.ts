import type { ReaderKind, ReaderPosition, ReadPassage } from '../../../src/retrieval/inputs/reader.js';
import { wikipediaReader } from '../../../src/retrieval/wikipedia/wikipedia-reader.js';
import { fixture } from '../../support/fixtures.js';

/** Path of a stored dump. */
export const storedDump = (name: string): string => fixture('wikipedia', name);

export interface Reading {
  readonly passages: ReadPassage[];
  readonly bad: string[];
  readonly leftOut: string[];
}

export async function readDumpFile(
  path: string,
  {
    from = null,
    skipBad = false,
    kind = wikipediaReader,
  }: { from?: ReaderPosition | null; skipBad?: boolean; kind?: ReaderKind } = {},
): Promise<Reading> {
  const reading: Reading = { passages: [], bad: [], leftOut: [] };
  const onBad = (error: Error): void => {
    if (!skipBad) throw error;
    reading.bad.push(error.message);
  };
  const reader = await kind.open(path);
  for await (const passage of reader.read({
    from,
    onBad,
    onLeftOut: (reason) => reading.leftOut.push(reason),
  }))
    reading.passages.push(passage);
  return reading;
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

export function pageXml(id: number, title: string, text: string): string {
  return `  <page>
    <title>${escaped(title)}</title>
    <ns>0</ns>
    <id>${id}</id>
    <revision><id>${id + 1000}</id><text xml:space="preserve">${escaped(text)}</text></revision>
  </page>
`;
}

export const dumpXml = (...pages: string[]): string => `<mediawiki>\n${pages.join('')}</mediawiki>\n`;
