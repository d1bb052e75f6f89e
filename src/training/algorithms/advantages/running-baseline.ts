// A running mean of rewards for groups of one, which have nobody to be compared with.
//
// Search-R1's size 1 is plain REINFORCE on R itself (`groupOfOne: 'reward'`); with rewards of 0 and 1 every wrong answer
// then has no gradient. Ours takes off an exponential mean of earlier rewards of the same cluster of questions; a cluster
// never seen before starts from the mean over all.

export interface RunningBaselineState {
  readonly decay: number;
  readonly overall: number | null;
  readonly clusters: Readonly<Record<string, number>>;
}

export class RunningBaselines {
  readonly #decay: number;
  readonly #clusters: Map<string, number>;
  #overall: number | null;

  /** @param state  as `state()` gave it, or a new decay in [0, 1) */
  constructor(state: RunningBaselineState | { readonly decay: number } = { decay: 0.9 }) {
    this.#decay = state.decay;
    this.#clusters = new Map('clusters' in state ? Object.entries(state.clusters) : []);
    this.#overall = 'overall' in state ? state.overall : null;
  }

  /** Expected reward of a cluster, of rewards seen before; 0 before the first. */
  valueOf(cluster: string): number {
    return this.#clusters.get(cluster) ?? this.#overall ?? 0;
  }

  /** Call after the advantages of the step are made: a reward must not be its own baseline. */
  update(cluster: string, reward: number): void {
    const blend = (before: number | null | undefined): number =>
      before === null || before === undefined ? reward : this.#decay * before + (1 - this.#decay) * reward;
    this.#clusters.set(cluster, blend(this.#clusters.get(cluster) ?? this.#overall));
    this.#overall = blend(this.#overall);
  }

  /** Plain data, for the checkpoint. */
  state(): RunningBaselineState {
    return { decay: this.#decay, overall: this.#overall, clusters: Object.fromEntries(this.#clusters) };
  }
}
