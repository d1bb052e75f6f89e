// The loop's state, and what others are told of it. Only the turn under way changes it; what it becomes is written down before
// the next thing begins.

import type { LoopHouse } from './house.js';
import type { Commit, Publisher } from './publisher.js';
import { type LoopState, moved } from './state.js';
import type { LoopEvent } from './states.js';
import { type LoopNews, News } from './webhooks.js';

export class Book {
  readonly #news: News;

  constructor(
    private readonly house: Pick<LoopHouse, 'settings' | 'onNote' | 'onFailure'>,
    private readonly publisher: Pick<Publisher, 'save'>,
    public state: LoopState,
  ) {
    this.#news = new News({
      urls: house.settings.webhooks,
      onFailure: (url, error) => house.onFailure(error, `news to ${new URL(url).host}`),
    });
  }

  /** As the table says. @throws {InvalidInputError} it has no such transition */
  async move(event: LoopEvent, changes: Partial<LoopState> = {}): Promise<void> {
    this.state = moved(this.state, event, changes);
    await this.publisher.save(this.state);
  }

  /** What was done, and what belongs to it, in one: from here on it holds, whatever fails after it. */
  readonly commit: Commit = async (next, others = {}) => {
    await this.publisher.save(next, others);
    this.state = next;
  };

  tell(
    event: LoopNews['event'],
    version: string | null,
    reasons: readonly string[],
    by: string | null = null,
  ): void {
    const { live } = this.state;
    this.house.onNote(`${event}: ${version?.slice(0, 12) ?? 'the loop'}`, { reasons, live, by });
    this.#news.send({ event, version, live, reasons, by, at: Date.now() });
  }
}
