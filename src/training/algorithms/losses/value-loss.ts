// The critic's loss: squared error against the returns, with moves beyond the clip not rewarded (PPO's reference code).
//
//   L = 0.5 mean_t max((V - R)^2, (clip(V, Vold - eps, Vold + eps) - R)^2)
//
// The mean runs over all sampled tokens of the batch, whatever the policy's aggregation is. eps is 0.2; Search-R1's
// release uses 0.5 and lets the mean run over observation tokens as well.

export interface ValueLossOutput {
  /** [n], before the mean. */
  readonly losses: Float64Array;
  readonly gradients: Float64Array;
  readonly clipped: number;
}

/** All of one sequence's sampled tokens, [n]. */
export function valueLoss(
  values: Float64Array,
  valuesOld: Float64Array,
  returns: Float64Array,
  epsilon: number,
): ValueLossOutput {
  const losses = new Float64Array(values.length);
  const gradients = new Float64Array(values.length);
  let clipped = 0;
  for (let i = 0; i < losses.length; i++) {
    const [value, old, target] = [values[i]!, valuesOld[i]!, returns[i]!];
    const held = Math.min(Math.max(value, old - epsilon), old + epsilon);
    const [plain, bounded] = [(value - target) ** 2, (held - target) ** 2];
    losses[i] = 0.5 * Math.max(plain, bounded);
    gradients[i] = bounded > plain ? 0 : value - target;
    if (bounded > plain) clipped += 1;
  }
  return { losses, gradients, clipped };
}
