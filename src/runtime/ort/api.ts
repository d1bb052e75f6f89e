// The part of onnxruntime's C API that is used here: one typed function each, statuses checked and released.

import { RuntimeError } from '../../errors.js';
import type { NativeLibrary } from './library.js';

/** Address of an object that onnxruntime owns. */
export type Handle = bigint;

/** Places in `struct OrtApi` (onnxruntime_c_api.h), whose order only ever grows at its end. */
const PLACE = {
  GetErrorMessage: 2,
  CreateEnv: 3,
  CreateSession: 7,
  CreateSessionOptions: 10,
  SetSessionGraphOptimizationLevel: 23,
  SetIntraOpNumThreads: 24,
  SessionGetInputCount: 30,
  SessionGetOutputCount: 31,
  SessionGetInputTypeInfo: 33,
  SessionGetOutputTypeInfo: 34,
  SessionGetInputName: 36,
  SessionGetOutputName: 37,
  CreateRunOptions: 39,
  RunOptionsSetTerminate: 46,
  RunOptionsUnsetTerminate: 47,
  CreateTensorWithDataAsOrtValue: 49,
  CastTypeInfoToTensorInfo: 55,
  GetTensorElementType: 60,
  GetDimensionsCount: 61,
  GetDimensions: 62,
  GetSymbolicDimensions: 63,
  CreateCpuMemoryInfo: 69,
  AllocatorFree: 76,
  GetAllocatorWithDefaultOptions: 78,
  ReleaseStatus: 93,
  ReleaseSession: 95,
  ReleaseValue: 96,
  ReleaseRunOptions: 97,
  ReleaseTypeInfo: 98,
  ReleaseSessionOptions: 100,
  AddSessionConfigEntry: 130,
  RunWithBinding: 133,
  CreateIoBinding: 134,
  ReleaseIoBinding: 135,
  BindInput: 136,
  BindOutput: 137,
  AddInitializer: 150,
  CreatePrepackedWeightsContainer: 166,
  ReleasePrepackedWeightsContainer: 167,
  CreateSessionWithPrepackedWeightsContainer: 168,
} as const;

type Name = keyof typeof PLACE;

export type Api = ReturnType<typeof createApi>;

const POINTER = 'void *';

/** Binds the functions of one library for this thread. Nothing here keeps arrays alive: callers do. */
export function createApi(library: NativeLibrary) {
  const bind = binderOf(library);
  const { checked, giving, releasing } = bind;
  const path = process.platform === 'win32' ? 'str16' : 'str';
  return {
    createEnv: giving('CreateEnv', 'int', 'str'),

    createSessionOptions: giving('CreateSessionOptions'),
    setGraphOptimization: checked('SetSessionGraphOptimizationLevel', POINTER, 'int'),
    setThreads: checked('SetIntraOpNumThreads', POINTER, 'int'),
    addConfigEntry: checked('AddSessionConfigEntry', POINTER, 'str', 'str'),
    addInitializer: checked('AddInitializer', POINTER, 'str', POINTER),
    releaseSessionOptions: releasing('ReleaseSessionOptions'),

    createSession: giving('CreateSession', POINTER, path, POINTER),
    createPrepackedWeights: giving('CreatePrepackedWeightsContainer'),
    releasePrepackedWeights: releasing('ReleasePrepackedWeightsContainer'),
    createSessionWithPrepackedWeights: giving(
      'CreateSessionWithPrepackedWeightsContainer',
      POINTER,
      path,
      POINTER,
      POINTER,
    ),
    releaseSession: releasing('ReleaseSession'),

    inputCount: giving('SessionGetInputCount', POINTER),
    outputCount: giving('SessionGetOutputCount', POINTER),
    ...nameReaders(library, bind),
    inputTypeInfo: giving('SessionGetInputTypeInfo', POINTER, 'size_t'),
    outputTypeInfo: giving('SessionGetOutputTypeInfo', POINTER, 'size_t'),
    tensorInfo: tensorInfoReader(library, bind),
    releaseTypeInfo: releasing('ReleaseTypeInfo'),

    createCpuMemoryInfo: giving('CreateCpuMemoryInfo', 'int', 'int'),
    createTensor: giving(
      'CreateTensorWithDataAsOrtValue',
      POINTER,
      POINTER,
      'size_t',
      POINTER,
      'size_t',
      'int',
    ),
    releaseValue: releasing('ReleaseValue'),

    createBinding: giving('CreateIoBinding', POINTER),
    bindInput: checked('BindInput', POINTER, 'str', POINTER),
    bindOutput: checked('BindOutput', POINTER, 'str', POINTER),
    runWithBinding: checked('RunWithBinding', POINTER, POINTER, POINTER),
    releaseBinding: releasing('ReleaseIoBinding'),

    createRunOptions: giving('CreateRunOptions'),
    setTerminate: checked('RunOptionsSetTerminate', POINTER),
    unsetTerminate: checked('RunOptionsUnsetTerminate', POINTER),
    releaseRunOptions: releasing('ReleaseRunOptions'),
  };
}

type Binder = ReturnType<typeof binderOf>;

/** The kinds of functions that the table has. */
function binderOf(library: NativeLibrary) {
  const get = (name: Name, result: string, parameters: readonly string[]) =>
    library.bind(PLACE[name], result, parameters);

  const message = get('GetErrorMessage', 'str', [POINTER]);
  const releaseStatus = get('ReleaseStatus', 'void', [POINTER]);

  function check(status: Handle | null): void {
    if (!status) return;
    const text: string = message(status);
    releaseStatus(status);
    throw new RuntimeError(`onnxruntime: ${text}`);
  }

  return {
    /** A function that returns a status. */
    checked: (name: Name, ...parameters: string[]) => {
      const call = get(name, POINTER, parameters);
      return (...values: unknown[]): void => check(call(...values));
    },

    /** A function that returns a status and gives its result through its last parameter, 8 bytes wide. */
    giving: (name: Name, ...parameters: string[]) => {
      const call = get(name, POINTER, [...parameters, POINTER]);
      return (...values: unknown[]): Handle => {
        const slot = new BigUint64Array(1);
        check(call(...values, slot));
        return slot[0] as bigint;
      };
    },

    releasing: (name: Name) => get(name, 'void', [POINTER]) as (handle: Handle) => void,
  };
}

/** Names of a session's inputs and outputs. */
function nameReaders(library: NativeLibrary, { checked, giving }: Binder) {
  const defaultAllocator = giving('GetAllocatorWithDefaultOptions');
  const allocatorFree = checked('AllocatorFree', POINTER, POINTER);
  /** Reads a string that onnxruntime allocated and gives it back. */
  const owned = (pointer: Handle): string => {
    const text = library.text(pointer);
    allocatorFree(defaultAllocator(), pointer);
    return text;
  };
  const inputName = giving('SessionGetInputName', POINTER, 'size_t', POINTER);
  const outputName = giving('SessionGetOutputName', POINTER, 'size_t', POINTER);
  return {
    inputName: (session: Handle, at: number) => owned(inputName(session, at, defaultAllocator())),
    outputName: (session: Handle, at: number) => owned(outputName(session, at, defaultAllocator())),
  };
}

function tensorInfoReader(library: NativeLibrary, { checked, giving }: Binder) {
  const castToTensorInfo = giving('CastTypeInfoToTensorInfo', POINTER);
  const elementType = checked('GetTensorElementType', POINTER, POINTER);
  const dimensionsCount = giving('GetDimensionsCount', POINTER);
  const dimensions = checked('GetDimensions', POINTER, POINTER, 'size_t');
  const symbolic = checked('GetSymbolicDimensions', POINTER, POINTER, 'size_t');

  /** Element code and shape of a tensor's type; a dimension that is not fixed gives its name, `?` where it has none. */
  return (typeInfo: Handle): { code: number; shape: (number | string)[] } | null => {
    const info = castToTensorInfo(typeInfo);
    if (info === 0n) return null;
    const code = new Int32Array(1);
    elementType(info, code);
    const rank = Number(dimensionsCount(info));
    const sizes = new BigInt64Array(rank);
    const names = new BigUint64Array(rank);
    dimensions(info, sizes, rank);
    symbolic(info, names, rank);
    const shape = Array.from(sizes, (size, axis) =>
      size >= 0n ? Number(size) : library.text(names[axis] as bigint) || '?',
    );
    return { code: code[0] as number, shape };
  };
}
