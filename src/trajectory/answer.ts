// What counts as the answer in sampled text, and the normal form in which answers are compared
// (protocol, section 4). White space and word borders are Python's, as in the papers' code.

/** Python's `str.isspace` set; JavaScript's `\s` lacks U+001C..U+001F and U+0085 and has U+FEFF. */
const OTHER_SPACE = '\\t-\\r\\x1c-\\x1f\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const SPACE = `${OTHER_SPACE}\\x20`;
const LEADING_SPACE = new RegExp(`^[${SPACE}]+`);
/** A blank that stands alone is as it should be: in a long text most do, and each replacement costs. */
const SPACE_RUN = new RegExp(`[${SPACE}]{2,}|[${OTHER_SPACE}]`, 'g');
const SPACE_CHARACTER = new RegExp(`[${SPACE}]`);
const PUNCTUATION = /[!-/:-@[-`{-~]/g;
const ARTICLE = /(?<![\p{L}\p{N}_])(?:an?|the)(?![\p{L}\p{N}_])/gu;

const OPEN = '<answer>';
const CLOSE = '</answer>';

/** Number of white-space characters (UTF-16 units) at the start. */
export const leadingSpaceLength = (text: string): number => LEADING_SPACE.exec(text)?.[0].length ?? 0;

/** Number of white-space characters (UTF-16 units) at the end; linear in that number. */
export function trailingSpaceLength(text: string): number {
  let end = text.length;
  while (end > 0 && SPACE_CHARACTER.test(text[end - 1] as string)) end--;
  return text.length - end;
}

/** Python's `str.strip()`. */
export const trimSpace = (text: string): string =>
  text.slice(
    leadingSpaceLength(text),
    Math.max(leadingSpaceLength(text), text.length - trailingSpaceLength(text)),
  );

/**
 * Text of the last `<answer>...</answer>`, trimmed; null when there is none. A match runs from the first
 * opening to the first closing tag after it. Give it one turn's sampled text: a match never crosses an
 * observation.
 */
export function extractAnswer(sampledText: string): string | null {
  let answer: string | null = null;
  for (let from = 0; ; ) {
    const open = sampledText.indexOf(OPEN, from);
    if (open < 0) return answer;
    const close = sampledText.indexOf(CLOSE, open + OPEN.length);
    if (close < 0) return answer;
    answer = trimSpace(sampledText.slice(open + OPEN.length, close));
    from = close + CLOSE.length;
  }
}

/** Lower case; ASCII punctuation deleted; the words a, an, the as a space; white space collapsed. */
export function normaliseAnswer(text: string): string {
  const words = text.toLowerCase().replace(PUNCTUATION, '').replace(ARTICLE, ' ');
  return trimSpace(words.replace(SPACE_RUN, ' '));
}
