// loop/: learning, offline and online: trajectories to learn from, training runs, gates and publication.
// Questions and recorded rollouts in; trained adapters out.
// Never answers a request, never touches what is being served but by publishing.

export * from './offline/index.js';
export * from './online/index.js';
export { readWarmStart } from './warm-start/line.js';
export { makeWarmStart, type WarmStartOptions, type WarmStartSummary } from './warm-start/make.js';
export { makeRivals } from './warm-start/make-rivals.js';
export type { TeachingHouse } from './warm-start/teach.js';
export { transcriptOf } from './warm-start/transcript.js';
