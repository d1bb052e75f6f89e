// What the rest of the house sees of a weight file: named tensors, read on demand by ranged reads.

export type TensorType =
  | 'F32'
  | 'F16'
  | 'BF16'
  | 'Q8_0'
  | 'Q4_0'
  | 'Q4_1'
  | 'Q5_0'
  | 'Q5_1'
  | 'Q2_K'
  | 'Q3_K'
  | 'Q4_K'
  | 'Q5_K'
  | 'Q6_K';

export interface TensorInfo {
  readonly name: string;
  /** Row major, outermost first (GGUF's reversed order is turned round). */
  readonly shape: readonly number[];
  readonly type: TensorType;
  /** File that holds it and its place there, in bytes. */
  readonly file: string;
  readonly byteOffset: number;
  readonly byteLength: number;
}

export interface TensorSource {
  readonly format: 'safetensors' | 'gguf';
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** safetensors: `__metadata__`; GGUF: the key-value section. */
  readonly metadata: ReadonlyMap<string, unknown>;
  /**
   * Dequantised values, row major. Synchronous: call from a worker or a command, never on the HTTP thread.
   * @throws {NotFoundError} no such tensor
   * @throws {FileFormatError} the file is shorter than its header says
   */
  readFloat32(name: string): Float32Array;
  /** Stored bytes as they are. */
  readRaw(name: string): Uint8Array;
  close(): void;
}
