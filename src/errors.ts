// One hierarchy of errors with stable codes. HTTP status lives in server/ only. A message says what was
// expected, what came and where. To add a cause: one subclass with its own `code`; never reuse a code.

/** Values that explain an error; kept small, no question or passage text. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null>>;

export interface ErrorOptions {
  readonly cause?: unknown;
  readonly details?: ErrorDetails;
}

export class SearchloopError extends Error {
  readonly code: string;
  readonly details: ErrorDetails;

  constructor(code: string, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** A setting or flag that cannot be used. */
export class ConfigError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('config_invalid', message, options);
  }
}

/** A caller's input (request field, CLI argument, file content) that breaks its contract. */
export class InvalidInputError extends SearchloopError {
  /** Path of the offending field, such as `messages[0].role`; null when the whole input is meant. */
  readonly param: string | null;

  constructor(message: string, param: string | null = null, options?: ErrorOptions) {
    super('invalid_input', message, options);
    this.param = param;
  }
}

/** A prompt (with its requested tokens) that does not fit the model's window. */
export class ContextLengthError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('context_length_exceeded', message, options);
  }
}

/** Something named that does not exist: model, adapter, index, trajectory. */
export class NotFoundError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('not_found', message, options);
  }
}

/** A file whose bytes break its format. The message names file, part (tensor, key) and offset. */
export class FileFormatError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('file_format_invalid', message, options);
  }
}

/** A checksum, digest or manifest that does not match. The message holds both values. */
export class IntegrityError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('integrity_mismatch', message, options);
  }
}

/** What was to be changed is not what it was taken for: somebody else changed it meanwhile. */
export class ConflictError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('conflict', message, options);
  }
}

/** Something real that this version does not support (architecture, tensor type, adapter option). */
export class UnsupportedError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('unsupported', message, options);
  }
}

/** A graph that breaks a shape or type rule. The message names node, inputs and shapes. */
export class GraphError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('graph_invalid', message, options);
  }
}

/** onnxruntime refused or failed. */
export class RuntimeError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('runtime_failed', message, options);
  }
}

/** The admission queue is full. `retryAfterMs` is a measured guess, never 0. */
export class OverloadedError extends SearchloopError {
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number, options?: ErrorOptions) {
    super('overloaded', message, options);
    this.retryAfterMs = retryAfterMs;
  }
}

/** A part that is starting, stopping or broken; a later try may succeed. */
export class UnavailableError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('unavailable', message, options);
  }
}

/** A service that was asked does not take this very request: to ask it again is of no use, others may pass. */
export class RefusedError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('refused', message, options);
  }
}

/** The model produced a non-finite number. The sequence ends; others go on. */
export class NonFiniteError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('non_finite', message, options);
  }
}

/** The retriever failed after its retries. */
export class RetrievalError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('retrieval_failed', message, options);
  }
}

/** A download that could not be finished. */
export class DownloadError extends SearchloopError {
  constructor(message: string, options?: ErrorOptions) {
    super('download_failed', message, options);
  }
}

/** The caller went away or asked to stop. */
export class CancelledError extends SearchloopError {
  constructor(message = 'cancelled', options?: ErrorOptions) {
    super('cancelled', message, options);
  }
}
