// One stage's session and its bindings.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CancelledError } from '../../errors.js';
import { type Graph, toOnnx } from '../../graph/index.js';
import type { Binding, InferenceSession, OnnxRuntime, Runner, TensorView } from '../../runtime/index.js';

export type Views = Readonly<Record<string, TensorView>>;

/** A wish to end the runs of a model: each stage looks here before it begins. */
export class Cancellation {
  #isRequested = false;

  request(): void {
    this.#isRequested = true;
  }

  forget(): void {
    this.#isRequested = false;
  }

  /** @throws {CancelledError} there was a request; it is taken back */
  check(): void {
    if (!this.#isRequested) return;
    this.#isRequested = false;
    throw new CancelledError('the run was terminated');
  }
}

export interface StageOptions {
  readonly runtime: OnnxRuntime;
  readonly threads: number;
  readonly spinning: boolean;
  /** Thread of the runs; null: the calling one. */
  readonly runner: Runner | null;
  readonly cancel: Cancellation;
}

interface Bound {
  readonly binding: Binding;
  readonly views: Map<string, TensorView>;
}

export class StageSession {
  readonly #bindings = new Map<string, Bound>();

  private constructor(
    private readonly session: InferenceSession,
    private readonly options: StageOptions,
  ) {}

  static async open(graph: Graph, options: StageOptions): Promise<StageSession> {
    const { runtime, threads, spinning } = options;
    const folder = await mkdtemp(join(tmpdir(), 'searchloop-stage-'));
    try {
      const file = join(folder, 'stage.onnx');
      await writeFile(file, toOnnx(graph));
      const session = await runtime.openSession(file, {
        threads,
        spinning,
        // Every stage has threads of its own: those of an idle one must not spin on the cores of the next.
        config: { 'session.force_spinning_stop': '1' },
      });
      return new StageSession(session, options);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /**
   * Runs the stage. Views that are the same objects as the last time under this key cost nothing; those that the graph
   * does not know are left out.
   * @throws {CancelledError} a request to terminate came before
   */
  async run(key: string, inputs: Views, outputs: Views): Promise<void> {
    this.options.cancel.check();
    let bound = this.#bindings.get(key);
    if (bound === undefined) {
      bound = { binding: this.session.createBinding(), views: new Map() };
      this.#bindings.set(key, bound);
    }
    const { binding, views } = bound;
    for (const { name } of this.session.inputs) {
      const view = inputs[name];
      if (view === undefined) throw new RangeError(`input "${name}" is not given`);
      if (views.get(name) === view) continue;
      binding.bindInput(name, view);
      views.set(name, view);
    }
    for (const { name } of this.session.outputs) {
      const view = outputs[name];
      if (view === undefined) throw new RangeError(`no memory is given for output "${name}"`);
      if (views.get(`out ${name}`) === view) continue;
      binding.bindOutput(name, view);
      views.set(`out ${name}`, view);
    }
    await binding.run(this.options.runner ?? undefined);
  }

  close(): void {
    this.session.close();
  }
}
