// The state of a run inside its thread: trained values and moments. A step changes all of it or nothing.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { checkContent, readManifest } from '../checkpoint/manifest.js';
import {
  holdsCritic,
  type NamedArray,
  readArrays,
  readState,
  writeState,
} from '../checkpoint/state-files.js';
import { commitCheckpoint } from '../checkpoint/store.js';
import { readTrained, writeTrained } from '../checkpoint/trained-files.js';
import { AdamW } from '../optimizers/index.js';
import type { StepControl } from '../step/accumulate.js';
import { runStep } from '../step/run-step.js';
import type { StepParts } from '../step/step-parts.js';
import type { Carried, CommitReport, SessionPoint, StepReport, StepWork } from './messages.js';
import type { OpenTrainable, Trainable, TrainedPart } from './trainable.js';

const CRITIC_FOLDER = 'critic';

interface Part extends TrainedPart {
  readonly name: 'policy' | 'critic';
  readonly optimizer: AdamW;
}

export class TrainerSession {
  #state: string;
  #step = 0;
  #version: string | null = null;
  readonly #parts: readonly Part[];

  private constructor(private readonly trainable: Trainable) {
    const { policy, critic } = trainable;
    const part = (name: Part['name'], trained: TrainedPart): Part => ({
      name,
      ...trained,
      optimizer: new AdamW(trained.model.parameters),
    });
    this.#parts = [part('policy', policy), ...(critic === null ? [] : [part('critic', critic)])];
    this.#state = this.#sum();
  }

  /** With the values that the run starts from. */
  static async begin<Spec>(open: OpenTrainable<Spec>, spec: Spec): Promise<TrainerSession> {
    return new TrainerSession(await open(spec));
  }

  /**
   * With the state of a checkpoint. Of a critic that it does not hold the start values stand, as at the beginning of a run:
   * `state` then differs from the one that was written, and is the same each time.
   * @throws {IntegrityError} its files are not what was written
   */
  static async resume<Spec>(open: OpenTrainable<Spec>, spec: Spec, folder: string): Promise<TrainerSession> {
    const manifest = await readManifest(folder);
    await checkContent(folder, manifest);
    const session = new TrainerSession(await open(spec));
    try {
      await session.#load(folder, manifest.step, manifest.version);
    } catch (error) {
      session.close();
      throw error;
    }
    return session;
  }

  get standsAt(): SessionPoint {
    return { step: this.#step, state: this.#state };
  }

  /** Runs one step; after an error all is as before. */
  async step(work: StepWork, control: StepControl): Promise<StepReport> {
    const before = this.#copy();
    const begun = performance.now();
    try {
      const { metrics, tokens } = await runStep(this.#stepParts(), work, control);
      this.#state = this.#sum();
      this.#step = work.step;
      const seconds = (performance.now() - begun) / 1000;
      return { step: work.step, state: this.#state, metrics, tokens, seconds };
    } catch (error) {
      before.restore();
      throw error;
    }
  }

  /** Writes a checkpoint of what stands now. */
  async commit(root: string, configDigest: string, carried: Carried = {}): Promise<CommitReport> {
    const parent = this.#version;
    const { folder, manifest } = await commitCheckpoint(root, this.#step, async (aside) => {
      for (const { name, form, model } of this.#parts)
        await writeTrained(name === 'policy' ? aside : join(aside, CRITIC_FOLDER), form, model.parameters);
      const updates = Object.fromEntries(this.#parts.map(({ name, optimizer }) => [name, optimizer.updates]));
      await writeState(aside, { state: this.#state, updates, carried }, this.#moments());
      return { version: await this.trainable.versionOf(aside), parent, configDigest };
    });
    this.#version = manifest.version;
    return this.standing(folder);
  }

  /** What stands now, which `folder` was opened or written with. */
  standing(folder: string): CommitReport {
    return { folder, step: this.#step, version: this.#version ?? '', state: this.#state };
  }

  /** Ends the run of a model that is under way. */
  terminate(): void {
    for (const { model } of this.#parts) model.terminate();
  }

  close(): void {
    this.trainable.close();
  }

  #stepParts(): StepParts {
    const [policy, critic] = this.#parts;
    return { policy: policy as Part, critic: critic ?? null };
  }

  #moments(parts: readonly Part[] = this.#parts): NamedArray[] {
    return parts.flatMap(({ name, optimizer }) =>
      optimizer.moments.map((moment) => ({ ...moment, name: `${name}.${moment.name}` })),
    );
  }

  async #load(folder: string, step: number, version: string): Promise<void> {
    const state = await readState(folder);
    const held = this.#parts.filter(({ name }) => name === 'policy' || holdsCritic(state));
    for (const { name, form, model, optimizer } of held) {
      const from = name === 'policy' ? folder : join(folder, CRITIC_FOLDER);
      const values = readTrained(from, form, model.parameters);
      for (const [i, parameter] of model.parameters.entries())
        parameter.values.set(values[i] as Float32Array);
      optimizer.restore(state.updates[name] ?? 0);
    }
    readArrays(folder, this.#moments(held));
    this.#state = this.#sum();
    this.#step = step;
    this.#version = version;
  }

  /** What a failed step is undone with. */
  #copy(): { restore(): void } {
    const arrays = [
      ...this.#parts.flatMap(({ model }) => model.parameters.map(({ values }) => values)),
      ...this.#moments().map(({ values }) => values),
    ];
    const copies = arrays.map((values) => values.slice());
    const updates = this.#parts.map(({ optimizer }) => optimizer.updates);
    return {
      restore: () => {
        for (const [i, values] of arrays.entries()) values.set(copies[i] as Float32Array);
        for (const [i, { optimizer }] of this.#parts.entries()) optimizer.restore(updates[i] as number);
      },
    };
  }

  #sum(): string {
    const hash = createHash('sha256');
    for (const { name, model } of this.#parts)
      for (const parameter of model.parameters) {
        const { buffer, byteOffset, byteLength } = parameter.values;
        hash.update(`${name}.${parameter.name}\n`).update(new Uint8Array(buffer, byteOffset, byteLength));
      }
    return hash.digest('hex');
  }
}
