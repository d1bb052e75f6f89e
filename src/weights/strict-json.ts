// JSON read strictly, for file headers: duplicate keys are refused and objects become Maps, so that no key
// (`__proto__`) can reach a prototype. Positions in messages are byte offsets.

export type StrictJson = string | number | boolean | null | StrictJson[] | Map<string, StrictJson>;

/** Where and why a text is not strict JSON. `offset` counts bytes of its UTF-8 form. */
export class StrictJsonError extends Error {
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS: readonly (readonly [string, boolean | null])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];

/**
 * Parses one JSON text; white space may surround it.
 * @throws {StrictJsonError} not JSON, a key twice in one object, or nesting deeper than `maxDepth`
 */
export function parseStrictJson(text: string, maxDepth = 16): StrictJson {
  const reader = new Reader(text, maxDepth);
  const value = reader.value(0);
  reader.end();
  return value;
}

class Reader {
  private at = 0;

  constructor(
    private readonly text: string,
    private readonly maxDepth: number,
  ) {}

  value(depth: number): StrictJson {
    this.space();
    const first = this.text[this.at];
    if (first === '{' || first === '[') {
      if (depth >= this.maxDepth) throw this.fault(`nested deeper than ${this.maxDepth}`);
      return first === '{' ? this.object(depth) : this.array(depth);
    }
    if (first === '"') return this.string();
    for (const [word, value] of WORDS)
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    return this.number();
  }

  end(): void {
    this.space();
    if (this.at < this.text.length) throw this.fault('expected the end of the JSON text');
  }

  private object(depth: number): Map<string, StrictJson> {
    const object = new Map<string, StrictJson>();
    this.at += 1;
    if (this.next('}')) return object;
    do {
      this.space();
      const start = this.at;
      const key = this.string();
      if (object.has(key)) {
        this.at = start;
        throw this.fault(`key ${JSON.stringify(key)} stands twice in one object`);
      }
      if (!this.next(':')) throw this.fault('expected ":"');
      object.set(key, this.value(depth + 1));
    } while (this.next(','));
    if (!this.next('}')) throw this.fault('expected "," or "}"');
    return object;
  }

  private array(depth: number): StrictJson[] {
    const array: StrictJson[] = [];
    this.at += 1;
    if (this.next(']')) return array;
    do array.push(this.value(depth + 1));
    while (this.next(','));
    if (!this.next(']')) throw this.fault('expected "," or "]"');
    return array;
  }

  private string(): string {
    if (this.text[this.at] !== '"') throw this.fault('expected a string');
    let end = this.at + 1;
    while (end < this.text.length && this.text[end] !== '"') end += this.text[end] === '\\' ? 2 : 1;
    try {
      const value = JSON.parse(this.text.slice(this.at, end + 1)) as string;
      this.at = end + 1;
      return value;
    } catch {
      throw this.fault('expected a string');
    }
  }

  private number(): number {
    const literal = this.match(NUMBER);
    if (literal === null) throw this.fault('expected a JSON value');
    return Number(literal);
  }

  private match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (!found) return null;
    this.at = pattern.lastIndex;
    return found[0];
  }

  private next(sign: string): boolean {
    this.space();
    if (this.text[this.at] !== sign) return false;
    this.at += 1;
    return true;
  }

  private space(): void {
    this.match(SPACE);
  }

  private fault(message: string): StrictJsonError {
    const found =
      this.at < this.text.length ? JSON.stringify(this.text.slice(this.at, this.at + 12)) : 'the end';
    return new StrictJsonError(`${message}, found ${found}`, Buffer.byteLength(this.text.slice(0, this.at)));
  }
}
