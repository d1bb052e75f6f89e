// Questions that cannot be asked as things are: they were answered by a method with a shorter prompt, imported, or under a
// larger window. Each is tried once, and then stands in nobody's way.

import type { StoredMessage } from '../../trajectory/index.js';
import { conversationDigest } from './gate/questions.js';

type Messages = readonly StoredMessage[];

export class Unaskable {
  readonly #digests = new Set<string>();

  get size(): number {
    return this.#digests.size;
  }

  has(messages: Messages): boolean {
    return this.#digests.size > 0 && this.#digests.has(conversationDigest(messages));
  }

  /** @returns false where it was known */
  add(messages: Messages): boolean {
    const before = this.#digests.size;
    this.#digests.add(conversationDigest(messages));
    return this.#digests.size > before;
  }
}
