// A model as the trainer sees it: log-probabilities of chosen tokens forward, gradients of parameters backward.

/** One sequence and the tokens of it that count. */
export interface ScoredSequence {
  readonly tokenIds: readonly number[];
  /**
   * Indices t >= 1 of the tokens whose log-probability is wanted, ascending. Token t is scored at position t - 1;
   * only these positions reach the output layer.
   */
  readonly targets: readonly number[];
}

/** Sequences that run together. Their padding is the model's own business. */
export interface MicroBatch {
  readonly sequences: readonly ScoredSequence[];
}

/** All arrays have one entry for each target, sequence after sequence. */
export interface Scores {
  /** Natural logs, of `tokenIds[t]`; empty for a value model. */
  readonly logprobs: Float32Array;
  /** Entropy in nats of the distribution that token t was drawn from; empty for a value model. */
  readonly entropies: Float32Array;
  /** V_t from the last hidden state (after the norm) at t - 1; empty for a policy. */
  readonly values: Float32Array;
}

/** d loss / d score for each target of the batch that was scored last; a missing array counts as zeros. */
export interface ScoreGradients {
  readonly logprobs?: Float32Array;
  readonly entropies?: Float32Array;
  readonly values?: Float32Array;
}

/** A trained tensor. Both arrays stay the same memory while the model is open: write values in place. */
export interface Parameter {
  /** As PEFT names it (`base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`), or the hub for whole weights. */
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
  /** A value further from 0 is of no use: the engine would refuse it. Absent: any finite one will do. */
  readonly largest?: number;
  /** Sum over all `backward` calls since `clearGradients`. */
  readonly gradient: Float32Array;
}

/** One thing at a time: score, or forward and then backward. */
export interface TrainingLane {
  /**
   * Scores a micro-batch without remembering it (reference and old log-probabilities).
   * @throws {NonFiniteError} a score is not finite; says which
   */
  score(batch: MicroBatch): Promise<Scores>;
  /** Scores a micro-batch and keeps what `backward` needs. */
  forward(batch: MicroBatch): Promise<Scores>;
  /**
   * Adds the gradient of the last forwarded batch to what the lane gathers. Once for each `forward`.
   * @throws {NonFiniteError} a gradient is not finite; names the parameter
   */
  backward(gradients: ScoreGradients): Promise<void>;
}

/** As a lane of its own it uses all threads, and its gradients are `parameters[].gradient`. */
export interface TrainingModel extends TrainingLane {
  readonly parameters: readonly Parameter[];
  /**
   * At least one. They share the threads and run side by side, not beside the model itself: most of the work between
   * large products runs on one thread, so that two micro-batches beside each other are done sooner than one after the
   * other. Gradients of the first are those of the model.
   */
  readonly lanes: readonly TrainingLane[];
  /** Adds what the other lanes gathered to `parameters[].gradient`, lane by lane, and clears it there. */
  gatherGradients(): void;
  /** Of all lanes. */
  clearGradients(): void;
  /** Ends a running run between two stages, from this or another thread; it throws `CancelledError`. */
  terminate(): void;
  /** Takes back what `terminate` asked for and no run has seen. */
  forgetTermination(): void;
  close(): void;
}
