// The library that onnxruntime-node ships, opened through koffi: where it lies and how its functions are called.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { KoffiFunc } from 'koffi';
import { UnavailableError } from '../../errors.js';
import { type Around, flushingDenormals } from './denormals.js';
import { type FileMapping, fileMapping } from './file-mapping.js';

type Koffi = typeof import('koffi');

// biome-ignore lint/suspicious/noExplicitAny: the types of a native function are strings, checked by koffi.
export type NativeFunction = KoffiFunc<(...values: any[]) => any>;

/** Version of the C API that is asked for: the newest function used here came with 8; later libraries serve it. */
const API_VERSION = 17;

/** Length of the function table that is read; the order of `struct OrtApi` is append-only. */
const TABLE_LENGTH = 211;

export interface NativeLibrary {
  readonly path: string;
  /** onnxruntime's version, such as `1.30.0`. */
  readonly version: string;
  readonly koffiVersion: string;
  /** The function at a place of `struct OrtApi`, with koffi's types. */
  bind(place: number, result: string, parameters: readonly string[]): NativeFunction;
  /** Address of an array's first element. Moves a small array out of the garbage-collected heap first. */
  address(data: ArrayBufferView): bigint;
  text(pointer: bigint): string;
  readonly flushingDenormals: Around;
  /** Files as memory; null where the system has no `mmap`. */
  readonly mapFile: FileMapping | null;
  /** Gives memory that the C library keeps for later back to the system, where it can be asked to. */
  trimMemory(): void;
}

const FILE_NAMES: Readonly<Record<string, string>> = {
  linux: 'libonnxruntime.so.1',
  darwin: 'libonnxruntime.1.dylib',
  win32: 'onnxruntime.dll',
};

/**
 * Path of the shared library inside the installed onnxruntime-node.
 * @throws {UnavailableError} when the package ships none for this system
 */
function libraryPath(): string {
  const require = createRequire(import.meta.url);
  const root = dirname(require.resolve('onnxruntime-node/package.json'));
  const path = join(
    root,
    'bin',
    'napi-v6',
    process.platform,
    process.arch,
    FILE_NAMES[process.platform] ?? 'libonnxruntime.so.1',
  );
  if (!existsSync(path))
    throw new UnavailableError(
      `onnxruntime-node ships no library for ${process.platform}/${process.arch}: ${path} does not exist`,
    );
  return path;
}

/** Opening a session allocates and frees as much as the weights; glibc keeps such holes otherwise. */
function memoryTrimmer(koffi: Koffi): () => void {
  if (process.platform !== 'linux') return () => {};
  try {
    const trim = koffi.load(null).func('malloc_trim', 'int', ['size_t']);
    return () => trim(0);
  } catch {
    // Another C library than glibc.
    return () => {};
  }
}

const RTLD_NOW = 2;

/**
 * Keeps the library in memory for good. koffi unloads it when its own handle is collected or its thread ends,
 * while functions, sessions and onnxruntime's threads still need it.
 */
function pin(koffi: Koffi, path: string): void {
  const opened =
    process.platform === 'win32'
      ? koffi.load('kernel32.dll').func('LoadLibraryW', 'void *', ['str16'])(path)
      : koffi.load(null).func('dlopen', 'void *', ['str', 'int'])(path, RTLD_NOW);
  if (!opened) throw new UnavailableError(`${path} cannot be loaded`);
}

/**
 * Opens the library and reads its function table. Every thread opens it anew: koffi's types belong to a thread.
 * @throws when koffi or the library cannot be loaded
 */
export async function openLibrary(path = libraryPath()): Promise<NativeLibrary> {
  const koffi: Koffi = await import('koffi');
  pin(koffi, path);
  const library = koffi.load(path);
  // struct OrtApiBase { const OrtApi *(*GetApi)(uint32_t); const char *(*GetVersionString)(void); }
  const base = library.func('OrtGetApiBase', 'void *', [])();
  const [getApi, getVersion] = koffi.decode(base, 'void *', 2);
  // Prototypes have no name: names are global in koffi, and a second loading would clash.
  const prototype = (result: string, parameters: readonly string[]) => koffi.proto(result, [...parameters]);
  const version: string = koffi.decode(getVersion, prototype('str', []))();
  const api = koffi.decode(getApi, prototype('void *', ['uint32_t']))(API_VERSION);
  if (!api)
    throw new UnavailableError(`onnxruntime ${version} does not serve version ${API_VERSION} of its C API`);
  const table: bigint[] = koffi.decode(api, 'void *', TABLE_LENGTH);
  return {
    path,
    version,
    koffiVersion: koffi.version,
    bind: (place, result, parameters) => koffi.decode(table[place], prototype(result, parameters)),
    address: (data) => koffi.address(data),
    text: (pointer) => koffi.decode.string(pointer),
    flushingDenormals: flushingDenormals(koffi),
    mapFile: fileMapping(koffi),
    trimMemory: memoryTrimmer(koffi),
  };
}
