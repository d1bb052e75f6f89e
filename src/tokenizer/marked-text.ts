// Marking: characters that could make an added token are written as private-use characters that occur nowhere
// else, one for one. Marked text cannot match an added token, alone or together with what stands around it, and
// can be turned back exactly.

import { InvalidInputError } from '../errors.js';
import type { TextMap } from './chat-template.js';

export interface Marking {
  readonly mark: TextMap;
  readonly unmark: TextMap;
}

/**
 * The characters of added tokens that must be marked: punctuation and symbols, or all characters of a token that
 * has neither. Letters stay, so that a template's changes of case and a role inside `<|...|>` keep working.
 */
export function tellingCharacters(tokens: Iterable<string>): string[] {
  const characters = new Set<string>();
  for (const token of tokens) {
    const visible = [...token].filter((character) => !/\p{White_Space}/u.test(character));
    const signs = visible.filter((character) => !/[\p{L}\p{M}\p{N}]/u.test(character));
    for (const character of signs.length > 0 ? signs : visible) characters.add(character);
  }
  return [...characters];
}

const PRIVATE_USE = /[\ue000-\uf8ff\u{f0000}-\u{ffffd}]/gu;

function* privateUse(): Generator<string> {
  for (let point = 0xe000; point <= 0xf8ff; point++) yield String.fromCodePoint(point);
  for (let point = 0xf0000; point <= 0xffffd; point++) yield String.fromCodePoint(point);
}

function freeCharacters(count: number, texts: readonly string[]): string[] {
  const taken = new Set(texts.flatMap((text) => [...new Set(text.match(PRIVATE_USE) ?? [])]));
  const free: string[] = [];
  for (const character of privateUse()) {
    if (free.length === count) return free;
    if (!taken.has(character)) free.push(character);
  }
  throw new InvalidInputError('the messages hold every private-use character of Unicode', 'messages');
}

const classOf = (characters: readonly string[]): RegExp =>
  new RegExp(
    `[${characters.map((character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`).join('')}]`,
    'gu',
  );

const replacing = (from: readonly string[], to: readonly string[]): TextMap => {
  if (from.length === 0) return (text) => text;
  const table = new Map(from.map((character, index) => [character, to[index] as string]));
  const pattern = classOf(from);
  return (text) => text.replace(pattern, (character) => table.get(character) as string);
};

/**
 * @param telling characters to mark
 * @param texts all texts of the rendering; the marks are characters that none of them holds
 */
export function createMarking(telling: readonly string[], texts: readonly string[]): Marking {
  const marks = freeCharacters(telling.length, texts);
  return { mark: replacing(telling, marks), unmark: replacing(marks, telling) };
}
