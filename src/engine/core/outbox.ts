// What a step brought, gathered until it is sent as one message.

import type { EndEvent, EngineEvents, FailureEvent, StepEvent } from '../messages.js';

export class Outbox {
  #steps: StepEvent[] = [];
  #ends: EndEvent[] = [];
  #failures: FailureEvent[] = [];

  constructor(private readonly send: (events: EngineEvents) => void) {}

  step(event: StepEvent): void {
    this.#steps.push(event);
  }

  end(event: EndEvent): void {
    this.#ends.push(event);
  }

  failure(event: FailureEvent): void {
    this.#failures.push(event);
  }

  flush(): void {
    if (this.#steps.length + this.#ends.length + this.#failures.length === 0) return;
    this.send({ steps: this.#steps, ends: this.#ends, failures: this.#failures });
    this.#steps = [];
    this.#ends = [];
    this.#failures = [];
  }
}
