// The probability ratio of PPO, rho_t = exp(logp_t - logpOld_t), safe for any input.

/** Bound of a log ratio before it is exponentiated, here and in k3. */
export const LOG_RATIO_LIMIT = 20;

export const clampLogRatio = (value: number): number =>
  Math.min(Math.max(value, -LOG_RATIO_LIMIT), LOG_RATIO_LIMIT);

export const ratio = (logprob: number, logprobOld: number): number =>
  Math.exp(clampLogRatio(logprob - logprobOld));

/** d ratio / d logprob: the ratio itself, and 0 beyond the clamp, where the ratio is constant. */
export const ratioGradient = (logprob: number, logprobOld: number): number =>
  Math.abs(logprob - logprobOld) > LOG_RATIO_LIMIT ? 0 : Math.exp(logprob - logprobOld);
