import type { GenerationSequence, Generator, OpenOptions } from './generator.js';

/** A generator that opens its sequences in another way and is the given one in all else. */
export function withOpen(
  engine: Generator,
  open: (options: OpenOptions) => Promise<GenerationSequence>,
): Generator {
  return {
    get info() {
      return engine.info;
    },
    open: (options = {}) => open(options),
    loadAdapter: (name, folder, options) => engine.loadAdapter(name, folder, options),
    unloadAdapter: (name) => engine.unloadAdapter(name),
    listAdapters: () => engine.listAdapters(),
    setLiveAdapter: (name) => engine.setLiveAdapter(name),
    get liveAdapter() {
      return engine.liveAdapter;
    },
    stats: () => engine.stats(),
    close: () => engine.close(),
  };
}
