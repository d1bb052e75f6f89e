// A small zip writer for tests: stored or deflated members, nothing else.

import { crc32, deflateRawSync } from 'node:zlib';

export function zipFile(
  members: Readonly<Record<string, Buffer>>,
  options: { deflate?: boolean } = {},
): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of Object.entries(members)) {
    const data = options.deflate ? deflateRawSync(content) : content;
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE(options.deflate ? 8 : 0, 4);
    fields.writeUInt16LE(0x21, 8);
    fields.writeUInt32LE(crc32(content), 10);
    fields.writeUInt32LE(data.length, 14);
    fields.writeUInt32LE(content.length, 18);
    fields.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), fields, Buffer.from(name)]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    directory.push(
      Buffer.concat([Buffer.from('PK\x01\x02\x14\x00', 'latin1'), fields, tail, Buffer.from(name)]),
    );
    parts.push(local, data);
    offset += local.length + data.length;
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(directory.length, 8);
  end.writeUInt16LE(directory.length, 10);
  end.writeUInt32LE(size, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, ...directory, end]);
}

/** A wheel that pip accepts: any files, and the description that names it. */
export function wheelFile(
  name: string,
  version: string,
  files: Readonly<Record<string, Buffer>>,
): { readonly fileName: string; readonly bytes: Buffer } {
  const folder = `${name.replaceAll('-', '_')}-${version}`;
  const info = `${folder}.dist-info`;
  return {
    fileName: `${folder}-py3-none-any.whl`,
    bytes: zipFile(
      {
        ...files,
        [`${info}/METADATA`]: Buffer.from(`Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`),
        [`${info}/WHEEL`]: Buffer.from(
          'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
        ),
        [`${info}/RECORD`]: Buffer.from(''),
      },
      { deflate: true },
    ),
  };
}
