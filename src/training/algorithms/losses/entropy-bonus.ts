// Entropy bonus: takes the policy's entropy off the loss, aggregated as the policy loss is.
//
// Search-R1's release uses 0.001 although its page has no such term; ours is 0 unless asked for. The entropies come
// from the model, of the distribution that each sampled token was drawn from, and their gradient goes back to it.

/**
 * @param entropies  [n] nats, at the sampled tokens of one sequence
 * @param weight     bonus times aggregation weight of a token of this sequence
 * @returns          this sequence's part of the loss, and d loss / d entropy, the same for each of its tokens
 */
export function entropyLoss(entropies: Float64Array, weight: number): { loss: number; gradient: number } {
  let loss = 0;
  for (const entropy of entropies) loss -= weight * entropy;
  return { loss, gradient: -weight };
}
