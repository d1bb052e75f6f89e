// Names of adapters, their versions, and who holds a lease on which. A version stays resident while a name points at it
// or a sequence uses it; a name never silently means another version, and an unknown one never means the base model.

import { IntegrityError, InvalidInputError, NotFoundError, UnavailableError } from '../errors.js';
import { OneAtATime } from '../util/one-at-a-time.js';
import { EngineAwayError } from './away.js';
import type { AdapterInfo, LoadOptions } from './generator.js';
import { BASE_VERSION, type LoadedAdapter } from './messages.js';

/** The worker's side. */
export interface AdapterResidence {
  load(folder: string): Promise<LoadedAdapter>;
  drop(version: string): void;
}

export interface Lease {
  readonly version: string;
  /** Idempotent. */
  release(): void;
}

interface Version {
  readonly version: string;
  readonly rank: number;
  leases: number;
}

interface Named {
  readonly version: Version;
  readonly path: string;
  readonly isInternal: boolean;
  /** Why the present worker does not have it; null: it has. */
  readonly fault: Error | null;
}

/** An adapter that a new worker does not have. */
export interface AdapterFault {
  readonly name: string;
  readonly error: Error;
  /** The worker could not be asked: `retry` may find it. */
  readonly mayReturn: boolean;
}

export class AdapterRegistry {
  readonly #names = new Map<string, Named>();
  readonly #versions = new Map<string, Version>();
  #live: string | null = null;
  /** Loads and unloads happen one after the other. */
  readonly #turns = new OneAtATime();
  #loading = 0;

  constructor(
    private readonly residence: AdapterResidence,
    private readonly maxAdapters: number,
  ) {}

  /**
   * @throws {InvalidInputError} the name stands for other content and `replace` is not set, or too many versions have names
   * @throws {EngineAwayError} there will be room once the sequences of a version without a name have ended
   */
  async load(name: string, folder: string, options: LoadOptions = {}): Promise<AdapterInfo> {
    if (name === '' || name === BASE_VERSION)
      throw new InvalidInputError(`adapter name: expected other than "${name}"`, 'name');
    return this.#turns.run(async () => {
      this.#loading++;
      try {
        const loaded = await this.residence.load(folder);
        this.#name(name, folder, loaded, options);
        return this.#info(name);
      } finally {
        this.#loading--;
        this.#sweep();
      }
    });
  }

  /** @throws {NotFoundError} no such name; {InvalidInputError} it is the live one */
  unload(name: string): Promise<void> {
    return this.#turns.run(async () => {
      this.#named(name);
      if (this.#live === name)
        throw new InvalidInputError(
          `adapter "${name}" is live; point the live alias elsewhere first`,
          'name',
        );
      this.#names.delete(name);
      this.#sweep();
    });
  }

  list(): readonly AdapterInfo[] {
    return [...this.#names.keys()].map((name) => this.#info(name)).filter(({ fault }) => fault === null);
  }

  get live(): AdapterInfo | null {
    return this.#live === null ? null : this.#info(this.#live);
  }

  setLive(name: string | null): void {
    if (name !== null) this.#named(name);
    this.#live = name;
  }

  /**
   * @param adapter name or version; null is the base model, undefined the live alias
   * @throws {NotFoundError} neither a name nor a version that a name points at
   * @throws {EngineAwayError} the worker has lost it: what is asked for is never replaced by the base model
   */
  lease(adapter: string | null | undefined): Lease {
    const wanted = adapter === undefined ? this.#live : adapter;
    if (wanted === null || wanted === BASE_VERSION) return { version: BASE_VERSION, release: () => {} };
    const same = [...this.#names.values()].filter((item) => item.version.version === wanted);
    const named = this.#names.get(wanted) ?? same.find(({ fault }) => fault === null) ?? same[0];
    if (named === undefined) throw new NotFoundError(`no adapter "${wanted}" is loaded`);
    if (named.fault !== null)
      throw new EngineAwayError(
        `adapter "${wanted}" is not in the engine's new worker: ${named.fault.message}`,
        {
          cause: named.fault,
        },
      );
    const { version } = named;
    version.leases++;
    let held = true;
    return {
      version: version.version,
      release: () => {
        if (!held) return;
        held = false;
        version.leases--;
        this.#sweep();
      },
    };
  }

  /**
   * Loads everything again into a new worker. A name whose folder no longer holds its version is forgotten, but for the
   * live one: that stays, without content, until it is loaded again or the alias points elsewhere.
   * @returns what the worker does not have
   */
  reload(): Promise<readonly AdapterFault[]> {
    return this.#turns.run(() => this.#loadAgain([...this.#names]));
  }

  /** Tries those again for which the worker could not be asked. @returns what it still does not have */
  retry(): Promise<readonly AdapterFault[]> {
    return this.#turns.run(() =>
      this.#loadAgain([...this.#names].filter(([, { fault }]) => fault instanceof UnavailableError)),
    );
  }

  async #loadAgain(wanted: readonly (readonly [string, Named])[]): Promise<readonly AdapterFault[]> {
    const faults: AdapterFault[] = [];
    for (const [name, named] of wanted) {
      const error = await this.#faultOf(named);
      const mayReturn = error instanceof UnavailableError;
      if (error === null || mayReturn || this.#live === name)
        this.#names.set(name, { ...named, fault: error });
      else this.#names.delete(name);
      if (error !== null) faults.push({ name, error, mayReturn });
    }
    this.#sweep();
    return faults;
  }

  async #faultOf({ path, version }: Named): Promise<Error | null> {
    try {
      const loaded = await this.residence.load(path);
      if (loaded.version === version.version) return null;
      if (!this.#versions.has(loaded.version)) this.residence.drop(loaded.version);
      return new IntegrityError(`${path} holds version ${loaded.version}, expected ${version.version}`);
    } catch (error) {
      return error as Error;
    }
  }

  #name(
    name: string,
    path: string,
    loaded: LoadedAdapter,
    { replace = false, isInternal = false }: LoadOptions,
  ): void {
    const before = this.#names.get(name);
    const known = this.#versions.get(loaded.version);
    const refuse = (error: Error): never => {
      if (known === undefined) this.residence.drop(loaded.version);
      throw error;
    };
    if (before !== undefined && before.version.version !== loaded.version && !replace)
      refuse(
        new InvalidInputError(
          `adapter "${name}" is loaded as version ${before.version.version}, the folder holds ${loaded.version}; say replace to change it`,
          'name',
        ),
      );
    const leaving = before !== undefined && this.#isLastUse(before.version) ? 1 : 0;
    if (known === undefined && this.#versions.size - leaving >= this.maxAdapters) refuse(this.#full(name));
    const version = known ?? { ...loaded, leases: 0 };
    this.#versions.set(loaded.version, version);
    this.#names.set(name, { version, path, isInternal, fault: null });
  }

  /** @param name  that is to get another version */
  #full(name: string): Error {
    const full = `${this.#versions.size} adapter versions are resident, at most ${this.maxAdapters} may be`;
    const others = [...this.#names].filter(([other]) => other !== name).map(([, { version }]) => version);
    const named = new Set(others).size;
    return named < this.#versions.size
      ? new EngineAwayError(`${full}; one that has no name goes with its last sequence`)
      : new InvalidInputError(`${full}; unload one`, 'name');
  }

  #isLastUse(version: Version): boolean {
    const names = [...this.#names.values()].filter((named) => named.version === version).length;
    return version.leases === 0 && names === 1;
  }

  /** Drops versions without name and lease. Not while a load is under way: its version may be one of them. */
  #sweep(): void {
    if (this.#loading > 0) return;
    const named = new Set([...this.#names.values()].map(({ version }) => version));
    for (const version of [...this.#versions.values()])
      if (version.leases === 0 && !named.has(version)) {
        this.#versions.delete(version.version);
        this.residence.drop(version.version);
      }
  }

  #named(name: string): Named {
    const named = this.#names.get(name);
    if (named === undefined) throw new NotFoundError(`no adapter "${name}" is loaded`);
    return named;
  }

  #info(name: string): AdapterInfo {
    const { version, path, isInternal, fault } = this.#named(name);
    const { rank, leases } = version;
    return { name, version: version.version, rank, leases, path, isInternal, fault: fault?.message ?? null };
  }
}
