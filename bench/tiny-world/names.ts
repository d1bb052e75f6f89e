// Made-up names: two made-up words each, the first and the second from lists of their own for every kind of thing.

const CONSONANTS = 'bdfgklmnprtvz';
const VOWELS = 'aeiou';
/** A stemmer would cut these off, and two words might become one. */
const CUT_ENDINGS = /(?:ed|at|iz|al|er|el)$/;

/** `count` words of two syllables that are not among `taken`, which they join. */
export function inventWords(count: number, random: () => number, taken: Set<string>): string[] {
  const pick = (letters: string): string => letters[Math.floor(random() * letters.length)] as string;
  const words: string[] = [];
  while (words.length < count) {
    const word = [CONSONANTS, VOWELS, CONSONANTS, VOWELS, CONSONANTS].map(pick).join('');
    if (taken.has(word) || CUT_ENDINGS.test(word)) continue;
    taken.add(word);
    words.push(word);
  }
  return words;
}

/** `count` different pairs of a first and a second word, none of them `avoided`, in random order. */
export function pairNames(
  count: number,
  [first, second]: readonly [readonly string[], readonly string[]],
  random: () => number,
  avoided: ReadonlySet<string>,
): string[] {
  const names = new Set<string>();
  const pick = (words: readonly string[]): string => words[Math.floor(random() * words.length)] as string;
  while (names.size < count) {
    const name = `${pick(first)} ${pick(second)}`;
    if (!avoided.has(name)) names.add(name);
  }
  return [...names];
}
