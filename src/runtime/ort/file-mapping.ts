// Files as read-only memory, through the system's mmap.

import { UnavailableError } from '../../errors.js';

type Koffi = typeof import('koffi');

export interface FileMapping {
  /** Address of the file's bytes. The descriptor may be closed afterwards. @throws {UnavailableError} */
  map(descriptor: number, length: number): bigint;
  /** Gives the pages back; whoever reads them again gets them from the file. */
  forget(address: bigint, length: number): void;
  unmap(address: bigint, length: number): void;
}

const PROT_READ = 1;
const MAP_PRIVATE = 2;
const MADV_DONTNEED = 4;
const MAP_FAILED = 0xffff_ffff_ffff_ffffn;

export function fileMapping(koffi: Koffi): FileMapping | null {
  if (process.platform !== 'linux' && process.platform !== 'darwin') return null;
  const system = koffi.load(null);
  const map = system.func('mmap', 'void *', ['void *', 'size_t', 'int', 'int', 'int', 'int64_t']);
  const advise = system.func('madvise', 'int', ['void *', 'size_t', 'int']);
  const unmap = system.func('munmap', 'int', ['void *', 'size_t']);
  return {
    map(descriptor, length) {
      const address: bigint = map(null, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (address === MAP_FAILED) throw new UnavailableError(`a file of ${length} bytes cannot be mapped`);
      return address;
    },
    forget: (address, length) => advise(address, length, MADV_DONTNEED),
    unmap,
  };
}
