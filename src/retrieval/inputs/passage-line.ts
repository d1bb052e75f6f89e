import { InvalidInputError } from '../../errors.js';
import { wellFormed } from '../../util/well-formed.js';
import type { PassageInput } from '../passages/passage-store.js';
import { splitContents } from '../search-r1-document.js';

const MAX_ID_CHARACTERS = 512;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * One line of a corpus: `{"id","contents"}` in Search-R1's form, or `{"id","title","text"}`. Further keys are ignored.
 * @param where  place for messages
 * @throws {InvalidInputError} what was expected and what came
 */
export function parsePassageLine(bytes: Uint8Array, where: string): PassageInput {
  const record = parseObject(bytes, where);
  const id = typeof record['id'] === 'number' ? String(record['id']) : record['id'];
  if (typeof id !== 'string' || id === '' || id.length > MAX_ID_CHARACTERS)
    throw new InvalidInputError(
      `${where}: "id": expected a text of 1 to ${MAX_ID_CHARACTERS} characters or a number, came ${brief(id)}`,
    );
  const { title, text } =
    record['contents'] === undefined
      ? { title: record['title'] ?? '', text: record['text'] }
      : { ...splitContents(textOf(record['contents'], 'contents', where)) };
  return {
    id: wellFormed(id),
    title: wellFormed(textOf(title, 'title', where)),
    text: wellFormed(nonEmpty(textOf(text, 'text', where), where)),
  };
}

function parseObject(bytes: Uint8Array, where: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch (cause) {
    const reason = cause instanceof SyntaxError ? 'it is not JSON' : 'it is not valid UTF-8';
    throw new InvalidInputError(`${where}: expected one JSON object on the line, but ${reason}`, null, {
      cause,
    });
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new InvalidInputError(`${where}: expected one JSON object on the line, came ${brief(value)}`);
  return value as Record<string, unknown>;
}

function textOf(value: unknown, key: string, where: string): string {
  if (typeof value !== 'string')
    throw new InvalidInputError(
      key === 'text' && value === undefined
        ? `${where}: expected "contents", or "title" and "text"; neither "contents" nor "text" is there`
        : `${where}: "${key}": expected a text, came ${brief(value)}`,
    );
  return value;
}

function nonEmpty(text: string, where: string): string {
  if (text.trim() === '') throw new InvalidInputError(`${where}: the passage has no text`);
  return text;
}

function brief(value: unknown): string {
  if (value === undefined) return 'nothing';
  return value === null || typeof value !== 'object'
    ? (JSON.stringify(value) ?? typeof value).slice(0, 60)
    : Array.isArray(value)
      ? 'a list'
      : 'an object';
}
