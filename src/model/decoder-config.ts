// What a decoder is, in one vocabulary for every source it may come from.

export type DecoderArchitecture = 'llama' | 'qwen2' | 'qwen3';

export const DECODER_ARCHITECTURES: readonly DecoderArchitecture[] = ['llama', 'qwen2', 'qwen3'];

/** How rotary frequencies differ from theta^(-2i/headDim). */
export type RopeScaling =
  | { readonly kind: 'none' }
  /** Llama 3.1's rule: low frequencies divided by `factor`, high ones kept, a ramp between. */
  | {
      readonly kind: 'llama3';
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      readonly originalPositions: number;
    }
  /** GGUF stores the divisors themselves, in tensor `rope_freqs.weight`. */
  | { readonly kind: 'stored' };

export interface DecoderConfig {
  readonly architecture: DecoderArchitecture;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly vocabSize: number;
  /** Positions that the model was made for. */
  readonly maxPositions: number;
  readonly normEpsilon: number;
  readonly ropeTheta: number;
  readonly ropeScaling: RopeScaling;
  /** The output layer is the embedding table. */
  readonly tiedHead: boolean;
  /** Query, key and value projections have biases. */
  readonly qkvBias: boolean;
  /** Queries and keys are normalised per head before they are rotated. */
  readonly qkNorm: boolean;
  readonly bosTokenId: number | null;
  /** Tokens that end a turn; may be empty. */
  readonly eosTokenIds: readonly number[];
}
