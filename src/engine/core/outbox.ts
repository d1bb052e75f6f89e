// What a step brought, gathered until it is sent as one message.

import type { BeginEvent, EndEvent, EngineEvents, FailureEvent, StepEvent } from '../messages.js';

export class Outbox {
  #begins: BeginEvent[] = [];
  #steps: StepEvent[] = [];
  #ends: EndEvent[] = [];
  #failures: FailureEvent[] = [];

  constructor(private readonly send: (events: EngineEvents) => void) {}

  begin(event: BeginEvent): void {
    this.#begins.push(event);
  }

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
    const events = { begins: this.#begins, steps: this.#steps, ends: this.#ends, failures: this.#failures };
    if (Object.values(events).every((list) => list.length === 0)) return;
    this.send(events);
    this.#begins = [];
    this.#steps = [];
    this.#ends = [];
    this.#failures = [];
  }
}
