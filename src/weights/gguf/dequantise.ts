// Stored blocks to float32, one function a type. Layouts are those of ggml's block structs.

import { bfloat16BytesToFloat, halfBytesToFloat, halfToFloatTable } from '../half.js';
import type { TensorType } from '../tensor-source.js';
import { dequantiseQ2K, dequantiseQ3K, dequantiseQ4K, dequantiseQ5K, dequantiseQ6K } from './k-quants.js';

/** Whole blocks in, their values out; `out.length` is a multiple of the block size. */
export type Dequantise = (bytes: Uint8Array, out: Float32Array) => void;

export const DEQUANTISE: Readonly<Record<TensorType, Dequantise>> = {
  F32: floatBytes,
  F16: halfBytesToFloat,
  BF16: bfloat16BytesToFloat,
  Q8_0: dequantiseQ8,
  Q4_0: dequantiseQ4,
  Q4_1: dequantiseQ4WithMinimum,
  Q5_0: dequantiseQ5,
  Q5_1: dequantiseQ5WithMinimum,
  Q2_K: dequantiseQ2K,
  Q3_K: dequantiseQ3K,
  Q4_K: dequantiseQ4K,
  Q5_K: dequantiseQ5K,
  Q6_K: dequantiseQ6K,
};

function floatBytes(bytes: Uint8Array, out: Float32Array): void {
  new Uint8Array(out.buffer, out.byteOffset, out.byteLength).set(bytes.subarray(0, out.byteLength));
}

const u16 = (bytes: Uint8Array, at: number): number =>
  (bytes[at] as number) | ((bytes[at + 1] as number) << 8);

const u32 = (bytes: Uint8Array, at: number): number => u16(bytes, at) | (u16(bytes, at + 2) << 16);

/** Q8_0: half scale d, 32 signed bytes q; value d q. */
function dequantiseQ8(bytes: Uint8Array, out: Float32Array): void {
  const half = halfToFloatTable();
  for (let at = 0, to = 0; to < out.length; at += 34) {
    const d = half[u16(bytes, at)] as number;
    for (let i = 0; i < 32; i += 1, to += 1) out[to] = d * (((bytes[at + 2 + i] as number) << 24) >> 24);
  }
}

/** Q4_0: half scale d, 16 bytes: low nibbles are values 0 to 15, high nibbles 16 to 31; value d (q - 8). */
function dequantiseQ4(bytes: Uint8Array, out: Float32Array): void {
  const half = halfToFloatTable();
  for (let at = 0, to = 0; to < out.length; at += 18, to += 32) {
    const d = half[u16(bytes, at)] as number;
    for (let i = 0; i < 16; i += 1) {
      const byte = bytes[at + 2 + i] as number;
      out[to + i] = d * ((byte & 15) - 8);
      out[to + 16 + i] = d * ((byte >> 4) - 8);
    }
  }
}

/** Q4_1: half scale d, half minimum m, nibbles as Q4_0; value d q + m. */
function dequantiseQ4WithMinimum(bytes: Uint8Array, out: Float32Array): void {
  const half = halfToFloatTable();
  for (let at = 0, to = 0; to < out.length; at += 20, to += 32) {
    const d = half[u16(bytes, at)] as number;
    const m = half[u16(bytes, at + 2)] as number;
    for (let i = 0; i < 16; i += 1) {
      const byte = bytes[at + 4 + i] as number;
      out[to + i] = d * (byte & 15) + m;
      out[to + 16 + i] = d * (byte >> 4) + m;
    }
  }
}

/** Q5_0: half scale d, 32 fifth bits, nibbles as Q4_0; value d (q - 16). */
function dequantiseQ5(bytes: Uint8Array, out: Float32Array): void {
  const half = halfToFloatTable();
  for (let at = 0, to = 0; to < out.length; at += 22, to += 32) {
    const d = half[u16(bytes, at)] as number;
    const fifth = u32(bytes, at + 2);
    for (let i = 0; i < 16; i += 1) {
      const byte = bytes[at + 6 + i] as number;
      out[to + i] = d * (((byte & 15) | (((fifth >>> i) & 1) << 4)) - 16);
      out[to + 16 + i] = d * (((byte >> 4) | (((fifth >>> (i + 16)) & 1) << 4)) - 16);
    }
  }
}

/** Q5_1: half scale d, half minimum m, 32 fifth bits, nibbles as Q4_0; value d q + m. */
function dequantiseQ5WithMinimum(bytes: Uint8Array, out: Float32Array): void {
  const half = halfToFloatTable();
  for (let at = 0, to = 0; to < out.length; at += 24, to += 32) {
    const d = half[u16(bytes, at)] as number;
    const m = half[u16(bytes, at + 2)] as number;
    const fifth = u32(bytes, at + 4);
    for (let i = 0; i < 16; i += 1) {
      const byte = bytes[at + 8 + i] as number;
      out[to + i] = d * ((byte & 15) | (((fifth >>> i) & 1) << 4)) + m;
      out[to + 16 + i] = d * ((byte >> 4) | (((fifth >>> (i + 16)) & 1) << 4)) + m;
    }
  }
}
