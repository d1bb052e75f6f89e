// What the rest of the house sees of a tokenizer. It takes plain vocabulary data, never a model.

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
}

export interface ChatOptions {
  /** Ends with the opening of the assistant's turn. Default true. */
  readonly addGenerationPrompt?: boolean;
  /** Further variables for the template, such as `enable_thinking`. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

export interface Detokenizer {
  /** Text that this token completes; never half a character. At most 3 bytes are held back. */
  push(id: number): string;
  /** What is held back, invalid bytes as U+FFFD. */
  flush(): string;
}

export interface Tokenizer {
  readonly vocabSize: number;
  /** Ids of added tokens that are special (control) tokens. */
  readonly specialIds: ReadonlySet<number>;
  /** Names of added tokens to ids. */
  readonly addedTokens: ReadonlyMap<string, number>;
  /** Plain text: no added token is known, nothing is put around. For user text, passages, observations. */
  encodePlain(text: string): number[];
  /** Text in which added tokens count as such (our own templates only). `wrap` runs the post-processor. */
  encode(text: string, options?: { readonly wrap?: boolean }): number[];
  /** What the post-processor puts around ids, such as [CLS] and [SEP]; for ids that were cut to a length. */
  wrap(ids: readonly number[]): number[];
  /**
   * The fewest tokens that a text of so many UTF-8 bytes can give, at no cost; 0 where no bound is known. A text
   * whose minimum exceeds the window can be refused without encoding it. Not counted are characters that a
   * vocabulary has no token for and encoding drops: a few control characters, in some models.
   */
  minimumTokens(byteLength: number): number;
  /** All ids, special tokens spelled out; invalid UTF-8 as U+FFFD. */
  decode(ids: readonly number[], options?: { readonly skipSpecial?: boolean }): string;
  /** The bytes one token stands for (special tokens: their name). */
  tokenBytes(id: number): Uint8Array;
  createDetokenizer(options?: { readonly skipSpecial?: boolean }): Detokenizer;
  readonly hasChatTemplate: boolean;
  renderChat(messages: readonly ChatMessage[], options?: ChatOptions): string;
  /** Ids of the rendered chat; control tokens come from the template only, never from message text. */
  encodeChat(messages: readonly ChatMessage[], options?: ChatOptions): number[];
}
