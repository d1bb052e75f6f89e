// ECHO (2605.24517): cross-entropy on the environment's tokens beside the policy loss, so that failed rollouts teach too.
//
// The very opposite of the mask of Search-R1, and therefore off unless asked for. The paper trains on what a terminal
// printed; with us these are retrieved passages, of which a search policy should not become the author. Weight 0.05 when on.
// The denominator is ours: all environment tokens of the whole batch.

/**
 * @param logprobs   [n] of the environment tokens of one sequence
 * @param weight     the add-on's weight over the environment tokens of the batch
 * @returns          this sequence's part of the loss, and d loss / d logprob, the same for each of its tokens
 */
export function echoLoss(logprobs: Float64Array, weight: number): { loss: number; gradient: number } {
  let loss = 0;
  for (const logprob of logprobs) loss -= weight * logprob;
  return { loss, gradient: -weight };
}
