// Numbers of the GGUF format: tensor types with their blocks, metadata value types, and the limits we hold
// a header to. Sizes: ggml's block structs.

import type { TensorType } from '../tensor-source.js';

export interface BlockLayout {
  readonly type: TensorType;
  /** Values in one block; 1 for plain types. */
  readonly blockSize: number;
  readonly blockBytes: number;
}

const layout = (type: TensorType, blockSize: number, blockBytes: number): BlockLayout => ({
  type,
  blockSize,
  blockBytes,
});

/** Readable tensor types by their id in the file. */
export const TENSOR_TYPES: ReadonlyMap<number, BlockLayout> = new Map([
  [0, layout('F32', 1, 4)],
  [1, layout('F16', 1, 2)],
  [2, layout('Q4_0', 32, 18)],
  [3, layout('Q4_1', 32, 20)],
  [6, layout('Q5_0', 32, 22)],
  [7, layout('Q5_1', 32, 24)],
  [8, layout('Q8_0', 32, 34)],
  [10, layout('Q2_K', 256, 84)],
  [11, layout('Q3_K', 256, 110)],
  [12, layout('Q4_K', 256, 144)],
  [13, layout('Q5_K', 256, 176)],
  [14, layout('Q6_K', 256, 210)],
  [30, layout('BF16', 1, 2)],
]);

/** Types that exist but are not read, so that a refusal can name them. */
export const UNREAD_TENSOR_TYPES: ReadonlyMap<number, string> = new Map([
  [4, 'Q4_2'],
  [5, 'Q4_3'],
  [9, 'Q8_1'],
  [15, 'Q8_K'],
  [16, 'IQ2_XXS'],
  [17, 'IQ2_XS'],
  [18, 'IQ3_XXS'],
  [19, 'IQ1_S'],
  [20, 'IQ4_NL'],
  [21, 'IQ3_S'],
  [22, 'IQ2_S'],
  [23, 'IQ4_XS'],
  [24, 'I8'],
  [25, 'I16'],
  [26, 'I32'],
  [27, 'I64'],
  [28, 'F64'],
  [29, 'IQ1_M'],
  [31, 'Q4_0_4_4'],
  [32, 'Q4_0_4_8'],
  [33, 'Q4_0_8_8'],
  [34, 'TQ1_0'],
  [35, 'TQ2_0'],
  [36, 'IQ4_NL_4_4'],
  [37, 'IQ4_NL_4_8'],
  [38, 'IQ4_NL_8_8'],
  [39, 'MXFP4'],
  [40, 'NVFP4'],
]);

export const TENSOR_TYPE_IDS: ReadonlyMap<TensorType, number> = new Map(
  [...TENSOR_TYPES].map(([id, { type }]) => [type, id]),
);

export function blockLayout(type: TensorType): BlockLayout {
  return TENSOR_TYPES.get(TENSOR_TYPE_IDS.get(type) as number) as BlockLayout;
}

export const VALUE_TYPES = {
  uint8: 0,
  int8: 1,
  uint16: 2,
  int16: 3,
  uint32: 4,
  int32: 5,
  float32: 6,
  bool: 7,
  string: 8,
  array: 9,
  uint64: 10,
  int64: 11,
  float64: 12,
} as const;

export type ValueTypeName = keyof typeof VALUE_TYPES;

/** Smallest bytes of one value; an array's claimed length is held against the bytes that are left. */
export const VALUE_MIN_BYTES: Readonly<Record<ValueTypeName, number>> = {
  uint8: 1,
  int8: 1,
  uint16: 2,
  int16: 2,
  uint32: 4,
  int32: 4,
  float32: 4,
  bool: 1,
  string: 8,
  array: 12,
  uint64: 8,
  int64: 8,
  float64: 8,
};

export const MAGIC = 'GGUF';
export const DEFAULT_ALIGNMENT = 32;
export const MAX_ALIGNMENT = 65_536;
export const MAX_DIMENSIONS = 4;
export const MAX_NAME_BYTES = 65_535;
/** Longest text value: chat templates are below 1 MB. */
export const MAX_STRING_BYTES = 16 * 1024 * 1024;
export const MAX_ARRAY_DEPTH = 4;
/** Array elements of all metadata together; the largest vocabularies use about a million. */
export const MAX_ARRAY_ELEMENTS = 16 * 1024 * 1024;
