// What an encoder is, and how its token states become one vector.

export interface EncoderConfig {
  readonly architecture: 'bert';
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly vocabSize: number;
  /** Longest input, special tokens included. */
  readonly maxPositions: number;
  readonly tokenTypes: number;
  readonly normEpsilon: number;
}

export interface Pooling {
  /** The mean of the states of all real tokens, or the state of the first token. */
  readonly pooling: 'mean' | 'cls';
  /** Whether vectors are scaled to length 1. */
  readonly normalise: boolean;
}
