// The policy losses by name, and those that look at the whole batch before they begin.

import type { PolicyLossName } from '../settings.js';
import { cispoLoss } from './cispo.js';
import { clipCovLoss } from './clip-cov.js';
import { clippedLoss } from './clipped.js';
import { gspoLoss } from './gspo.js';
import { klCovLoss } from './kl-cov.js';
import { negativeLogLikelihood } from './negative-log-likelihood.js';
import { reinforceLoss } from './reinforce.js';
import type { TokenLoss } from './token-loss.js';

export const POLICY_LOSSES: Readonly<Record<PolicyLossName, TokenLoss>> = {
  clipped: clippedLoss,
  reinforce: reinforceLoss,
  cispo: cispoLoss,
  gspo: gspoLoss,
  'kl-cov': klCovLoss,
  'clip-cov': clipCovLoss,
  'negative-log-likelihood': negativeLogLikelihood,
};
