// Tells others what became of versions. Nothing waits for it, and a receiver that is away costs nothing but its news.

import { postJson } from '../../util/http.js';
import { OneAtATime } from '../../util/one-at-a-time.js';
import { retried } from '../../util/retried.js';

export interface LoopNews {
  readonly event: 'published' | 'refused' | 'rolled_back' | 'paused';
  readonly version: string | null;
  readonly live: string;
  readonly reasons: readonly string[];
  /** API key whose order led to it; null: the loop did it by itself. */
  readonly by: string | null;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface WebhookOptions {
  readonly urls: readonly string[];
  readonly onFailure: (url: string, error: Error) => void;
  readonly timeoutMs?: number;
  /** Pause before the second try; doubled before the third. */
  readonly retryMs?: number;
}

const RETRIES = 2;
const HEADERS = { 'user-agent': 'searchloop' };

/** @returns resolves when all receivers have it or were given up; never rejects */
export async function sendNews(news: LoopNews, options: WebhookOptions): Promise<void> {
  await Promise.all(options.urls.map((url) => sendTo(url, news, options)));
}

/** Sends news one after the other, so that they arrive in their order. */
export class News {
  readonly #turns = new OneAtATime();

  constructor(private readonly options: WebhookOptions) {}

  send(news: LoopNews): void {
    void this.#turns.run(() => sendNews(news, this.options));
  }
}

async function sendTo(
  url: string,
  news: LoopNews,
  { timeoutMs = 5000, retryMs = 1000, onFailure }: WebhookOptions,
): Promise<void> {
  const body = { object: 'loop.event', ...news };
  const deliver = async (): Promise<void> => {
    const { ok, status } = await postJson(url, body, { headers: HEADERS, timeoutMs });
    if (!ok) throw new Error(`status ${status}`);
  };
  await retried(deliver, { retries: RETRIES, pauseMs: retryMs, ref: false }).catch((error) =>
    onFailure(url, error),
  );
}
