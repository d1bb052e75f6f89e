// A real differentiable model with exact gradients in plain TypeScript: the logits of a token are a row of a table,
// chosen by the token before it. The value model reads a number from a column in the same way.

import type {
  MicroBatch,
  Parameter,
  ScoredSequence,
  ScoreGradients,
  Scores,
  TrainingModel,
} from '../../../src/training/training-model.js';

/** What tests may do to a model: called before each forward pass. */
export type Interference = (model: TrainingModel) => void;

export interface BigramOptions {
  readonly vocabSize: number;
  readonly kind: 'policy' | 'value';
  readonly seed: number;
  readonly interfere?: Interference;
}

interface Row {
  readonly from: number;
  readonly token: number;
}

const rowsOf = ({ sequences }: MicroBatch): Row[] =>
  sequences.flatMap(({ tokenIds, targets }: ScoredSequence) =>
    targets.map((t) => ({ from: tokenIds[t - 1] as number, token: tokenIds[t] as number })),
  );

const parameter = (name: string, shape: readonly number[], fill: (i: number) => number): Parameter => {
  const count = shape.reduce((a, b) => a * b, 1);
  return {
    name,
    shape,
    values: Float32Array.from({ length: count }, (_, i) => fill(i)),
    gradient: new Float32Array(count),
  };
};

/** log p of a row's logits, in double precision. */
function logSoftmax(logits: Float32Array): Float64Array {
  const top = Math.max(...logits);
  const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0)) + top;
  return Float64Array.from(logits, (logit) => logit - total);
}

export function bigramModel({ vocabSize, kind, seed, interfere }: BigramOptions): TrainingModel {
  const start = (i: number): number => 0.3 * Math.sin(seed + 1.7 * i);
  const table =
    kind === 'policy'
      ? parameter('table.weight', [vocabSize, vocabSize], start)
      : parameter('value_head.weight', [1, vocabSize], start);
  let last: Row[] = [];
  const logitsOf = (from: number): Float32Array =>
    table.values.subarray(from * vocabSize, (from + 1) * vocabSize);

  function score(rows: readonly Row[]): Scores {
    if (kind === 'value') {
      const values = Float32Array.from(rows, ({ from }) => table.values[from] as number);
      return { logprobs: new Float32Array(0), entropies: new Float32Array(0), values };
    }
    const logs = rows.map(({ from }) => logSoftmax(logitsOf(from)));
    return {
      logprobs: Float32Array.from(rows, ({ token }, i) => logs[i]?.[token] as number),
      entropies: Float32Array.from(logs, (log) => -log.reduce((sum, l) => sum + Math.exp(l) * l, 0)),
      values: new Float32Array(0),
    };
  }

  function addPolicyGradient({ from, token }: Row, ofLogprob: number, ofEntropy: number): void {
    const log = logSoftmax(logitsOf(from));
    const entropy = -log.reduce((sum, l) => sum + Math.exp(l) * l, 0);
    log.forEach((l, v) => {
      const p = Math.exp(l);
      (table.gradient[from * vocabSize + v] as number) +=
        ofLogprob * ((v === token ? 1 : 0) - p) - ofEntropy * p * (l + entropy);
    });
  }

  const model: TrainingModel = {
    parameters: [table],
    score: async (batch) => score(rowsOf(batch)),
    async forward(batch) {
      interfere?.(model);
      last = rowsOf(batch);
      return score(last);
    },
    async backward({ logprobs, entropies, values }: ScoreGradients) {
      last.forEach((row, i) => {
        if (kind === 'value') (table.gradient[row.from] as number) += values?.[i] ?? 0;
        else addPolicyGradient(row, logprobs?.[i] ?? 0, entropies?.[i] ?? 0);
      });
    },
    get lanes() {
      return [model];
    },
    gatherGradients: () => {},
    clearGradients: () => void table.gradient.fill(0),
    terminate: () => {},
    forgetTermination: () => {},
    close: () => {},
  };
  return model;
}
