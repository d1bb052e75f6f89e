// What turns texts into vectors, as the rest of the room sees it.

export interface EmbedderInfo {
  /** Name of the model. */
  readonly id: string;
  /** sha256 of everything that decides a vector: weights, tokenizer, pooling, prefixes. */
  readonly digest: string;
  readonly dimension: number;
}

/** Many models want queries and passages told apart by a prefix. */
export type TextKind = 'query' | 'passage';

export interface EmbedOptions {
  readonly signal?: AbortSignal;
  /** Hears how many of the texts are done. */
  readonly onDone?: (done: number) => void;
}

export interface Embedder {
  readonly info: EmbedderInfo;
  /**
   * @returns f32 [texts, dimension], row major, in the order of the texts
   * @throws {CancelledError} the signal fired
   */
  embed(texts: readonly string[], kind: TextKind, options?: EmbedOptions): Promise<Float32Array>;
  close(): Promise<void>;
}

/** The text of a passage that is embedded. */
export function embeddingText(passage: { readonly title: string; readonly text: string }): string {
  return passage.title === '' ? passage.text : `${passage.title}\n${passage.text}`;
}
