// A tokenizer whose vocabulary is whatever a test needs: any byte string can be one token. It keeps the
// contract of the real one: plain text gives no control token, decoding never splits a character.

import type { Tokenizer } from '../../src/tokenizer/index.js';

export interface PieceTokenizer extends Tokenizer {
  /** The id of exactly these bytes, made when new. */
  piece(bytes: string | Uint8Array): number;
  readonly endId: number;
}

const CONTROL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'];

export function createPieceTokenizer(controlTokens: readonly string[] = CONTROL): PieceTokenizer {
  const bytesOf: Uint8Array[] = controlTokens.map((token) => Buffer.from(token));
  const ids = new Map<string, number>();
  const specialIds = new Set(controlTokens.keys());
  const vocabSize = 1_000_000;

  const piece = (bytes: string | Uint8Array): number => {
    const value = typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.from(bytes);
    const key = value.toString('hex');
    const known = ids.get(key);
    if (known !== undefined) return known;
    ids.set(key, bytesOf.push(value) - 1);
    return bytesOf.length - 1;
  };
  const encodePlain = (text: string): number[] =>
    (text.replace(/\p{Surrogate}/gu, '\ufffd').match(/\s|[^\s\p{L}]| ?\p{L}{1,6}/gu) ?? []).map(piece);
  const decode: Tokenizer['decode'] = (list, options) =>
    Buffer.concat(
      list
        .filter((id) => !(options?.skipSpecial && specialIds.has(id)))
        .map((id) => bytesOf[id] ?? Buffer.of()),
    ).toString('utf8');
  const control = (name: string): number => controlTokens.indexOf(name);

  return {
    piece,
    endId: control('<|im_end|>'),
    vocabSize,
    specialIds,
    addedTokens: new Map(controlTokens.map((token, id) => [token, id])),
    encodePlain,
    encode: encodePlain,
    wrap: (list) => [...list],
    minimumTokens: () => 0,
    decode,
    tokenBytes: (id) => (bytesOf[id] ?? new Uint8Array()).slice(),
    createDetokenizer(options) {
      const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
      return {
        push: (id) =>
          options?.skipSpecial && specialIds.has(id) ? '' : decoder.decode(bytesOf[id], { stream: true }),
        flush: () => decoder.decode(),
      };
    },
    hasChatTemplate: true,
    renderChat: (messages) =>
      `${messages.map(({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`).join('')}<|im_start|>assistant\n`,
    encodeChat(messages) {
      const [start, end] = [control('<|im_start|>'), control('<|im_end|>')];
      const turns = messages.flatMap(({ role, content }) => [
        start,
        ...encodePlain(`${role}\n${content}`),
        end,
        ...encodePlain('\n'),
      ]);
      return [...turns, start, ...encodePlain('assistant\n')];
    },
  };
}

/** Cuts text into tokens at these byte offsets, also inside characters. */
export function cutInto(tokenizer: PieceTokenizer, text: string, cuts: readonly number[]): number[] {
  const bytes = Buffer.from(text);
  const borders = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  );
  return borders.slice(1).map((end, i) => tokenizer.piece(bytes.subarray(borders[i] as number, end)));
}
