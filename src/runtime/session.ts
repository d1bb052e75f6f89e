// What the rest of the house sees of onnxruntime: sessions over graph files and bindings of typed arrays.

export type ElementType = 'float32' | 'float16' | 'int64' | 'int32' | 'uint8' | 'int8' | 'bool';

export type TensorData = Float32Array | Uint16Array | BigInt64Array | Int32Array | Uint8Array | Int8Array;

/** A typed array seen as a tensor. The runtime keeps it referenced while bound; nothing is copied (C API). */
export interface TensorView {
  readonly type: ElementType;
  readonly shape: readonly number[];
  /** May be a subarray of a larger buffer; holds at least the product of `shape`. */
  readonly data: TensorData;
}

export interface ValueInfo {
  readonly name: string;
  readonly type: ElementType;
  /** A string is a symbolic dimension. */
  readonly shape: readonly (number | string)[];
}

export interface SessionOptions {
  /** Threads inside an operator. */
  readonly threads: number;
  /** Whether those threads spin while they wait: faster alone, ruinous when sessions share cores. */
  readonly spinning?: boolean;
  /** Further session config entries (`session.*`). */
  readonly config?: Readonly<Record<string, string>>;
}

/** Inputs and outputs of repeated runs, bound once. Outputs may be the same memory as inputs. */
export interface Binding {
  bindInput(name: string, view: TensorView): void;
  bindOutput(name: string, view: TensorView): void;
  /**
   * Runs with what is bound. With the C API the outputs are written in place.
   * @throws {RuntimeError} with onnxruntime's message
   */
  run(): Promise<void>;
  /** Stops the running run of this binding as soon as onnxruntime looks (C API only). */
  terminate(): void;
  close(): void;
}

export interface InferenceSession {
  readonly inputs: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
  createBinding(): Binding;
  close(): void;
}

export interface OnnxRuntime {
  /** `c-api` through koffi, or `binding` (the slower fallback). */
  readonly kind: 'c-api' | 'binding';
  readonly version: string;
  openSession(graphFile: string, options: SessionOptions): Promise<InferenceSession>;
}
