import { SaxesParser } from 'saxes';
import { InvalidInputError } from '../../errors.js';

/** What a dump says about a page. */
export interface DumpPage {
  readonly id: string;
  readonly title: string;
  readonly namespace: number;
  readonly isRedirect: boolean;
  /** Content model of the text; "wikitext" where the dump says nothing. */
  readonly model: string;
  /** Wikitext of the last revision in the dump. */
  readonly text: string;
}

const FIELDS: Readonly<Record<string, string>> = {
  'page/title': 'title',
  'page/ns': 'namespace',
  'page/id': 'id',
  'page/revision/model': 'model',
  'page/revision/text': 'text',
};

/**
 * One page of a dump, from `<page>` to `</page>`.
 * @param where  place for messages
 * @throws {InvalidInputError} broken XML, or a page without id, title, namespace or text
 */
export function parsePage(bytes: Uint8Array, where: string): DumpPage {
  const found: Record<string, string> = {};
  let isRedirect = false;
  const path: string[] = [];
  let value: string | null = null;
  const parser = new SaxesParser();
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name }) => {
    path.push(name);
    const place = path.join('/');
    if (place === 'page/redirect') isRedirect = true;
    if (FIELDS[place] !== undefined) value = '';
  });
  parser.on('text', (text) => {
    if (value !== null) value += text;
  });
  parser.on('cdata', (text) => {
    if (value !== null) value += text;
  });
  parser.on('closetag', () => {
    const field = FIELDS[path.join('/')];
    if (field !== undefined) found[field] = value ?? '';
    value = null;
    path.pop();
  });
  try {
    parser.write(new TextDecoder('utf-8', { fatal: true }).decode(bytes)).close();
  } catch (cause) {
    const reason = (cause as Error).message.replace(/^\d+:\d+: /, '');
    throw new InvalidInputError(`${where}: broken XML: ${reason}`, null, { cause });
  }
  return pageOf(found, isRedirect, where);
}

function pageOf(found: Readonly<Record<string, string>>, isRedirect: boolean, where: string): DumpPage {
  const { id = '', title = '', namespace = '', model, text } = found;
  if (!/^\d+$/.test(id)) throw new InvalidInputError(`${where}: expected a page with a whole number as <id>`);
  if (title.trim() === '') throw new InvalidInputError(`${where}: expected a page with a <title>`);
  if (!/^-?\d+$/.test(namespace))
    throw new InvalidInputError(`${where}: expected a page with a whole number as <ns>`);
  if (text === undefined && !isRedirect)
    throw new InvalidInputError(`${where}: expected a page with a revision that has a <text>`);
  return {
    id,
    title: title.trim(),
    namespace: Number(namespace),
    isRedirect,
    model: model ?? 'wikitext',
    text: text ?? '',
  };
}
