// Half precision (IEEE binary16) and bfloat16, as stored in weight files, to float32 and back.

/** float32 of every binary16 bit pattern; 256 KiB, made at first use. */
let halfTable: Float32Array | null = null;

const scratch = new DataView(new ArrayBuffer(4));

/** float32 values of all 65,536 binary16 bit patterns, indexed by pattern. */
export function halfToFloatTable(): Float32Array {
  if (halfTable) return halfTable;
  const table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits += 1) table[bits] = decodeHalf(bits);
  halfTable = table;
  return table;
}

function decodeHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Value of one binary16 bit pattern. */
export function halfToFloat(bits: number): number {
  return halfToFloatTable()[bits & 0xffff] as number;
}

/** Nearest binary16 bit pattern of a float32 value; ties to even, overflow to infinity, NaN to a quiet NaN. */
export function floatToHalf(value: number): number {
  scratch.setFloat32(0, value);
  const bits = scratch.getUint32(0);
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x47800000) return sign | 0x7c00;
  if (magnitude >= 0x38800000) {
    // Normal: rebias the exponent (127 to 15), then round off 13 bits; a carry moves into the exponent rightly.
    const rebiased = magnitude - (112 << 23);
    return sign | roundShift(rebiased, 13);
  }
  const exponent = magnitude >>> 23;
  // Below half of the least subnormal (2^-24) everything is zero.
  if (exponent < 102) return sign;
  return sign | roundShift((magnitude & 0x7fffff) | 0x800000, 126 - exponent);
}

/** Right shift with round half to even. */
function roundShift(value: number, bits: number): number {
  const kept = value >>> bits;
  const rest = value & ((1 << bits) - 1);
  const half = 1 << (bits - 1);
  return rest > half || (rest === half && (kept & 1) === 1) ? kept + 1 : kept;
}

/** Nearest bfloat16 bit pattern of a float32 value; ties to even, NaN stays NaN. */
export function floatToBfloat16(value: number): number {
  scratch.setFloat32(0, value);
  const bits = scratch.getUint32(0);
  if ((bits & 0x7fffffff) > 0x7f800000) return ((bits >>> 16) | 0x40) & 0xffff;
  return (roundShift(bits & 0x7fffffff, 16) | ((bits >>> 16) & 0x8000)) & 0xffff;
}

/** Little-endian binary16 bytes to float32; any byte offset. `bytes` holds 2 x `out.length` bytes. */
export function halfBytesToFloat(bytes: Uint8Array, out: Float32Array): void {
  const table = halfToFloatTable();
  for (let i = 0, at = 0; i < out.length; i += 1, at += 2)
    out[i] = table[(bytes[at] as number) | ((bytes[at + 1] as number) << 8)] as number;
}

/** Little-endian bfloat16 bytes to float32: the upper half of its bits, exact for every pattern. */
export function bfloat16BytesToFloat(bytes: Uint8Array, out: Float32Array): void {
  const bits = new Uint32Array(out.buffer, out.byteOffset, out.length);
  for (let i = 0, at = 0; i < bits.length; i += 1, at += 2)
    bits[i] = ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 24);
}
