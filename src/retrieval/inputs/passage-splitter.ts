// Cuts running text into passages of about 100 words, the size that Search-R1's corpus has.

export const PASSAGE_WORDS = 100;

/** A word of a script without spaces is reckoned from its characters. */
const CHARACTERS_PER_WORD = 8;
const SENTENCE_END = /(?<=[.!?…]["'”’)\]]?)\s+|(?<=[。！？])/u;

/** Collects sentences and gives out passages that end where a sentence ends. */
export interface PassageSplitter {
  /** Adds a paragraph; @returns the passages that became full. */
  add(paragraph: string): string[];
  /** What is left, as a last passage; [] when nothing is. */
  end(): string[];
}

/**
 * A passage is closed by the sentence with which it reaches `words` words. A sentence longer than that is cut
 * between words (or, where there are no spaces, between characters).
 */
export function createPassageSplitter(words = PASSAGE_WORDS): PassageSplitter {
  let held: string[] = [];
  let count = 0;
  const end = (): string[] => {
    const passage = held.join(' ');
    held = [];
    count = 0;
    return passage === '' ? [] : [passage];
  };
  const add = (paragraph: string): string[] =>
    paragraph
      .split(SENTENCE_END)
      .flatMap((sentence) => cutLong(sentence.trim(), words))
      .flatMap((piece) => {
        held.push(piece);
        count += wordCount(piece);
        return count >= words ? end() : [];
      });
  return { add, end };
}

function wordCount(text: string): number {
  return Math.max(text.split(/\s+/).length, Math.ceil(text.length / CHARACTERS_PER_WORD));
}

function cutLong(sentence: string, words: number): string[] {
  const most = words * CHARACTERS_PER_WORD;
  const pieces: string[] = [];
  let start = 0;
  while (sentence.length - start > most) {
    // Within the piece alone: a long text without spaces would be searched from its begin for each.
    const space = sentence.slice(start, start + most + 1).lastIndexOf(' ');
    const at = space > 0 ? start + space : characterBorder(sentence, start + most);
    pieces.push(sentence.slice(start, at));
    start = sentence[at] === ' ' ? at + 1 : at;
  }
  pieces.push(sentence.slice(start));
  return pieces.filter((piece) => piece !== '');
}

/** Never between the halves of a surrogate pair. */
function characterBorder(text: string, at: number): number {
  const unit = text.charCodeAt(at - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? at - 1 : at;
}
