import { InvalidInputError } from '../../errors.js';
import { writePartFile } from '../part-file.js';
import { elementsOf, PLAIN_BYTES, plainBytes, type WrittenTensor } from '../plain-values.js';
import { MAX_HEADER_BYTES } from './header.js';

/**
 * Writes one safetensors file as the format's own library does: header padded with spaces to 8 bytes, wider
 * element types first so that every tensor lies aligned, then by name.
 * @throws {InvalidInputError} a name twice, values that do not fill their shape, a header over the format's limit
 */
export async function writeSafetensors(
  path: string,
  tensors: readonly WrittenTensor[],
  metadata: Readonly<Record<string, string>> = {},
): Promise<void> {
  const ordered = [...tensors].sort(
    (a, b) => PLAIN_BYTES[b.type] - PLAIN_BYTES[a.type] || (a.name < b.name ? -1 : 1),
  );
  const header = headerOf(ordered, metadata);
  await writePartFile(path, async (file) => {
    const length = new Uint8Array(8);
    new DataView(length.buffer).setBigUint64(0, BigInt(header.length), true);
    await file.write(length);
    await file.write(header);
    for (const tensor of ordered) await file.write(plainBytes(tensor));
  });
}

function headerOf(tensors: readonly WrittenTensor[], metadata: Readonly<Record<string, string>>): Uint8Array {
  const names = new Set<string>();
  const parts: string[] = [];
  if (Object.keys(metadata).length > 0) parts.push(`"__metadata__":${JSON.stringify(metadata)}`);
  let offset = 0;
  for (const { name, type, shape } of tensors) {
    if (names.has(name) || name === '__metadata__')
      throw new InvalidInputError(`tensor name "${name}" cannot be written twice or is reserved`);
    names.add(name);
    const end = offset + elementsOf(shape) * PLAIN_BYTES[type];
    // Put together as text: a tensor may be named as a prototype member is.
    const entry = JSON.stringify({ dtype: type, shape, data_offsets: [offset, end] });
    parts.push(`${JSON.stringify(name)}:${entry}`);
    offset = end;
  }
  const text = Buffer.from(`{${parts.join(',')}}`);
  const header = Buffer.alloc(Math.ceil(text.length / 8) * 8, ' ');
  text.copy(header);
  if (header.length > MAX_HEADER_BYTES)
    throw new InvalidInputError(`header of ${header.length} bytes, the limit is ${MAX_HEADER_BYTES}`);
  return header;
}
