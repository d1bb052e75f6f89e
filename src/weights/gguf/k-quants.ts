// The K types of ggml: super-blocks of 256 values whose sub-blocks have small integer scales of their own.

import { halfToFloatTable } from '../half.js';

const byte = (bytes: Uint8Array, at: number): number => bytes[at] as number;

const half = (bytes: Uint8Array, at: number): number =>
  halfToFloatTable()[byte(bytes, at) | (byte(bytes, at + 1) << 8)] as number;

/**
 * Q2_K, 84 bytes: 16 x (4-bit scale, 4-bit minimum), 64 bytes of 2-bit values, half d, half dmin.
 * Value d scale q - dmin minimum, sub-blocks of 16.
 */
export function dequantiseQ2K(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 84) {
    const d = half(bytes, at + 80);
    const dmin = half(bytes, at + 82);
    for (let sub = 0; sub < 16; sub += 1) {
      // Two halves of 128 values; within one, four bit pairs of the same 32 bytes.
      const from = at + 16 + (sub >> 3) * 32 + (sub & 1) * 16;
      const shift = ((sub >> 1) & 3) * 2;
      const scale = byte(bytes, at + sub);
      const dl = d * (scale & 15);
      const ml = dmin * (scale >> 4);
      for (let i = 0; i < 16; i += 1, to += 1) out[to] = dl * ((byte(bytes, from + i) >> shift) & 3) - ml;
    }
  }
}

/**
 * Q3_K, 110 bytes: 32 bytes of third bits, 64 bytes of 2-bit values, 16 six-bit scales in 12 bytes, half d.
 * Value d (scale - 32) (q - 4), sub-blocks of 16; a set third bit means that 4 is not taken away.
 */
export function dequantiseQ3K(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 110) {
    const d = half(bytes, at + 108);
    for (let sub = 0; sub < 16; sub += 1) {
      const from = at + 32 + (sub >> 3) * 32 + (sub & 1) * 16;
      const third = at + (sub & 1) * 16;
      const shift = ((sub >> 1) & 3) * 2;
      const dl = d * (scaleQ3K(bytes, at + 96, sub) - 32);
      for (let i = 0; i < 16; i += 1, to += 1) {
        const low = (byte(bytes, from + i) >> shift) & 3;
        const high = (byte(bytes, third + i) >> (sub >> 1)) & 1;
        out[to] = dl * (low - (high === 1 ? 0 : 4));
      }
    }
  }
}

/** Six-bit scale `sub` of 16: low four bits in bytes 0 to 7 (two nibbles each), high two in bytes 8 to 11. */
function scaleQ3K(bytes: Uint8Array, at: number, sub: number): number {
  const low = (byte(bytes, at + (sub & 7)) >> (sub < 8 ? 0 : 4)) & 15;
  const high = (byte(bytes, at + 8 + (sub & 3)) >> ((sub >> 2) * 2)) & 3;
  return low | (high << 4);
}

/**
 * Q4_K, 144 bytes: half d, half dmin, eight six-bit scales and minima in 12 bytes, 128 bytes of nibbles.
 * Value d scale q - dmin minimum, sub-blocks of 32.
 */
export function dequantiseQ4K(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 144) {
    const d = half(bytes, at);
    const dmin = half(bytes, at + 2);
    for (let sub = 0; sub < 8; sub += 1) {
      const from = at + 16 + (sub >> 1) * 32;
      const shift = (sub & 1) * 4;
      const dl = d * scaleK4(bytes, at + 4, sub);
      const ml = dmin * minimumK4(bytes, at + 4, sub);
      for (let i = 0; i < 32; i += 1, to += 1) out[to] = dl * ((byte(bytes, from + i) >> shift) & 15) - ml;
    }
  }
}

/** Q5_K, 176 bytes: as Q4_K with 32 bytes of fifth bits before the nibbles, bit `sub` for sub-block `sub`. */
export function dequantiseQ5K(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 176) {
    const d = half(bytes, at);
    const dmin = half(bytes, at + 2);
    for (let sub = 0; sub < 8; sub += 1) {
      const from = at + 48 + (sub >> 1) * 32;
      const shift = (sub & 1) * 4;
      const dl = d * scaleK4(bytes, at + 4, sub);
      const ml = dmin * minimumK4(bytes, at + 4, sub);
      for (let i = 0; i < 32; i += 1, to += 1) {
        const fifth = (byte(bytes, at + 16 + i) >> sub) & 1;
        out[to] = dl * (((byte(bytes, from + i) >> shift) & 15) | (fifth << 4)) - ml;
      }
    }
  }
}

/** Six-bit scale of sub-block 0 to 7: the first four whole in bytes 0 to 3, the rest split over bytes 8 to 11. */
function scaleK4(bytes: Uint8Array, at: number, sub: number): number {
  if (sub < 4) return byte(bytes, at + sub) & 63;
  return (byte(bytes, at + sub + 4) & 15) | ((byte(bytes, at + sub - 4) >> 6) << 4);
}

function minimumK4(bytes: Uint8Array, at: number, sub: number): number {
  if (sub < 4) return byte(bytes, at + sub + 4) & 63;
  return (byte(bytes, at + sub + 4) >> 4) | ((byte(bytes, at + sub) >> 6) << 4);
}

/**
 * Q6_K, 210 bytes: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales, half d.
 * Value d scale (q - 32), sub-blocks of 16.
 */
export function dequantiseQ6K(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 210) {
    const d = half(bytes, at + 208);
    for (let sub = 0; sub < 16; sub += 1) {
      // Per half of 128 values: quarters 0 and 1 are low nibbles of 64 bytes, 2 and 3 their high nibbles.
      const quarter = (sub >> 1) & 3;
      const low = at + (sub >> 3) * 64 + (quarter & 1) * 32 + (sub & 1) * 16;
      const high = at + 128 + (sub >> 3) * 32 + (sub & 1) * 16;
      const lowShift = quarter < 2 ? 0 : 4;
      const dl = d * ((byte(bytes, at + 192 + sub) << 24) >> 24);
      for (let i = 0; i < 16; i += 1, to += 1) {
        const pair = (byte(bytes, high + i) >> (quarter * 2)) & 3;
        out[to] = dl * ((((byte(bytes, low + i) >> lowShift) & 15) | (pair << 4)) - 32);
      }
    }
  }
}
