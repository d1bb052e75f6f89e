// What the rest of the house sees of onnxruntime: sessions over graph files and bindings of typed arrays.

export type ElementType = 'float32' | 'float16' | 'int64' | 'int32' | 'uint8' | 'int8' | 'bool';

export type TensorData = Float32Array | Uint16Array | BigInt64Array | Int32Array | Uint8Array | Int8Array;

/**
 * A typed array seen as a tensor. The runtime keeps it referenced while bound; nothing is copied
 * (C API). Its buffer must not be moved to another thread while bound.
 */
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

/** Where a tensor lies in a file of weights. */
export interface WeightTensor {
  readonly type: ElementType;
  readonly shape: readonly number[];
  readonly byteOffset: number;
}

/**
 * A file of weights that several sessions use, so that what onnxruntime makes of them (packed matrices) exists
 * once. Graphs refer to it as external data, by the same tensor names.
 */
export interface SharedWeights {
  /** Frees it when the last session that uses it is closed. */
  close(): void;
}

export interface SessionOptions {
  /** Threads inside an operator. */
  readonly threads: number;
  /** Whether those threads spin while they wait: faster alone, ruinous when sessions share cores. */
  readonly spinning?: boolean;
  /** Further session config entries (`session.*`). */
  readonly config?: Readonly<Record<string, string>>;
  /** Weights shared with other sessions of this thread. Changes memory, never results. */
  readonly weights?: SharedWeights;
}

/**
 * Names the runs of one binding across threads: post it to another thread of this process, which gives it to
 * its own `OnnxRuntime.terminate`.
 */
export interface TerminateHandle {
  /** Address of onnxruntime's run options; 0n with the fallback. */
  readonly runOptions: bigint;
  readonly cells: Int32Array;
}

/** A thread that only runs, for whoever wants to go on meanwhile. Of one runtime. */
export interface Runner {
  /** Waits for the run that is under way. */
  close(): Promise<void>;
}

/** Inputs and outputs of repeated runs, bound once. Outputs may be the same memory as inputs. */
export interface Binding {
  bindInput(name: string, view: TensorView): void;
  bindOutput(name: string, view: TensorView): void;
  /**
   * Runs with what is bound. With the C API the outputs are written in place. The calling thread is blocked
   * until the end: give way to its messages (`setImmediate`) between runs. With a runner that one's thread is blocked
   * instead, and the fallback blocks no thread; nothing of the binding may change or close until the run has ended.
   * @throws {RuntimeError} with onnxruntime's message
   * @throws {CancelledError} after a request to terminate
   */
  run(runner?: Runner): Promise<void>;
  /**
   * Ends the running run as soon as onnxruntime looks, between two nodes (C API only). Without a run, the next
   * one throws at once. As a run blocks its thread, it is ended from another one: see `terminateHandle`.
   */
  terminate(): void;
  readonly terminateHandle: TerminateHandle;
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
  /**
   * @throws {NotFoundError} the file is missing
   * @throws {RuntimeError} the graph is refused: message of onnxruntime, with the file
   */
  openSession(graphFile: string, options: SessionOptions): Promise<InferenceSession>;
  /**
   * Maps a file of weights for sharing (C API on Linux and macOS; elsewhere it does nothing).
   * @throws {NotFoundError} the file is missing
   * @throws {FileFormatError} a tensor lies beyond its end
   */
  openWeights(file: string, tensors: Readonly<Record<string, WeightTensor>>): SharedWeights;
  /** Starts a thread for runs, with the priority of the calling one. */
  startRunner(): Promise<Runner>;
  /** `Binding.terminate` for a binding of any thread. */
  terminate(handle: TerminateHandle): void;
}
