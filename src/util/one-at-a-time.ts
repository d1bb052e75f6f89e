// Work that must not run side by side: each piece begins when all that was asked for before has ended, well or not.

export class OneAtATime {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Resolves when all that was asked for so far has ended. */
  async settled(): Promise<void> {
    await this.#last;
  }
}
