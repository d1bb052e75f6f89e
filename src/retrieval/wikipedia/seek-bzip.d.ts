// The part of seek-bzip that we use; the package has no types.
declare module 'seek-bzip' {
  interface Input {
    readByte(): number;
    read(buffer: Uint8Array, offset: number, length: number): number;
    /** @param byte  place from the start of the file */
    seek(byte: number): void;
  }
  interface Output {
    writeByte(byte: number): void;
  }
  const bunzip: {
    /** Unpacks the block at a place in bits and checks its sum. Throws a TypeError when it is damaged. */
    decodeBlock(input: Input, bit: number, output: Output): void;
  };
  export = bunzip;
}
