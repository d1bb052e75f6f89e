/** f32 [dimension], entries in [-1, 1). */
export function randomVector(random: () => number, dimension: number): Float32Array {
  return Float32Array.from({ length: dimension }, () => 2 * random() - 1);
}
