// onnxruntime in this thread: its library, its functions and the two objects that everything needs.

import { type Api, createApi, type Handle } from './api.js';
import { type NativeLibrary, openLibrary } from './library.js';

/** Messages of onnxruntime below this severity are not written: a failure's text is in its status. */
const LOG_FATAL = 4;
const ARENA_ALLOCATOR = 1;
const DEFAULT_MEMORY = 0;

export interface Context {
  readonly library: NativeLibrary;
  readonly api: Api;
  readonly env: Handle;
  readonly memory: Handle;
}

let opened: Promise<Context> | undefined;

/** The context of this thread. @throws when koffi or the library cannot be loaded */
export function openContext(): Promise<Context> {
  opened ??= createContext();
  return opened;
}

async function createContext(): Promise<Context> {
  const library = await openLibrary();
  const api = createApi(library);
  return {
    library,
    api,
    // onnxruntime keeps one environment a process and counts its users; it lives as long as the process.
    env: api.createEnv(LOG_FATAL, 'searchloop'),
    memory: api.createCpuMemoryInfo(ARENA_ALLOCATOR, DEFAULT_MEMORY),
  };
}
