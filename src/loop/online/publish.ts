// Going live and back: the same operation. The next version is loaded aside and warmed, the choice is written down, the
// alias moves between two steps, and the old one drains by its leases.

import { ONE_GREEDY_TOKEN } from '../../engine/index.js';
import { ConfigError, IntegrityError } from '../../errors.js';
import { type LoopHouse, versionsOf } from './house.js';
import type { LoopState } from './state.js';
import { checkVersion } from './version-folder.js';

const NAME = 'loop-';
/** Published versions that stay resident beside the live one, for a quick way back. */
const RESIDENT = 1;

/** The loop's own in the engine at once: live, before it, confirmed last, on trial, trained, judged. */
const LOOP_VERSIONS = 6;

/** @throws {ConfigError} the engine has no room for the loop's versions beside the configured ones: it would fail amid its work */
export function checkRoom(engine: Pick<LoopHouse['engine'], 'listAdapters'>, maxAdapters: number): void {
  const configured = new Set(
    engine.listAdapters().flatMap(({ name, version }) => (name.startsWith(NAME) ? [] : [version])),
  ).size;
  const needed = configured + LOOP_VERSIONS;
  if (maxAdapters < needed)
    throw new ConfigError(
      `engine.maxAdapters is ${maxAdapters}, and the loop takes ${needed}: ${configured} configured and up to ${LOOP_VERSIONS} of its own`,
    );
}

/** Where the version that the loop began with comes from; it is not the loop's to unload. */
export interface StartVersion {
  readonly version: string;
  /** Adapter name; null is the base model. */
  readonly name: string | null;
}

export class Versions {
  constructor(
    private readonly house: Pick<LoopHouse, 'engine' | 'folder' | 'serving'>,
    readonly start: StartVersion,
  ) {}

  /** Name under which the engine has a version; null is the base model. */
  nameOf(version: string): string | null {
    return version === this.start.version ? this.start.name : `${NAME}${version.slice(0, 16)}`;
  }

  /** Loads a published version where it is not resident. @throws {IntegrityError} its files are not what was published */
  async ready(version: string): Promise<string | null> {
    const name = this.nameOf(version);
    const { engine } = this.house;
    if (name === null || version === this.start.version) return name;
    if (engine.listAdapters().some((item) => item.name === name && item.version === version)) return name;
    const folder = await checkVersion(versionsOf(this.house.folder), version);
    const loaded = await engine.loadAdapter(name, folder);
    if (loaded.version !== version)
      throw new IntegrityError(`${folder}: the engine loaded version ${loaded.version}, expected ${version}`);
    return name;
  }

  /** One token, so that the first question under the version finds everything in place. */
  async warm(name: string | null): Promise<void> {
    const { engine, serving } = this.house;
    const prompt = serving.tokenizer.encodePlain('warm');
    const sequence = await engine.open({ adapter: name, maxLength: prompt.length + 1 });
    try {
      sequence.append(prompt);
      const turn = sequence.generate(ONE_GREEDY_TOKEN);
      for await (const _step of turn);
    } finally {
      sequence.close();
    }
  }

  /** From now on new answers come from this version. */
  async switchTo(name: string | null): Promise<void> {
    await this.house.engine.setLiveAdapter(name);
  }

  /** Unloads what is neither live nor the way back; leases keep what answers still use. */
  async release({ live, published, watch, confirmed }: LoopState): Promise<void> {
    const recent = published.slice(-1 - RESIDENT).map(({ version }) => version);
    const wanted = new Set(
      [live, ...recent, confirmed, ...(watch === null ? [] : [watch.version, watch.against])].map((version) =>
        this.nameOf(version),
      ),
    );
    for (const { name } of this.house.engine.listAdapters())
      if (name.startsWith(NAME) && !wanted.has(name)) await this.house.engine.unloadAdapter(name);
  }
}
