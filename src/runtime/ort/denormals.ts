// Denormal numbers of the calling thread. onnxruntime sets flush-to-zero for its own threads, but for a calling
// thread only once in a process: for the one that makes the first session, and there for all JavaScript too.
// So the calling thread is switched here, around each call into onnxruntime, and switched back for JavaScript.

type Koffi = typeof import('koffi');

/** `fenv_t` of glibc on x86-64 is 32 bytes; the control register of SSE is its last word. */
const ENVIRONMENT_BYTES = 32;
const MXCSR_WORD = 7;
const DENORMALS_ARE_ZERO = 1 << 6;
const FLUSH_TO_ZERO = 1 << 15;

export type Around = <T>(work: () => T) => T;

/**
 * A function that runs `work` with denormal numbers taken as zero, and afterwards as JavaScript wants them.
 * Where the system is another one than Linux on x86-64 it only runs `work`.
 */
export function flushingDenormals(koffi: Koffi): Around {
  if (process.platform !== 'linux' || process.arch !== 'x64') return (work) => work();
  const library = koffi.load('libm.so.6');
  const set = library.func('fesetenv', 'int', ['void *']);
  const plain = new Int32Array(new ArrayBuffer(ENVIRONMENT_BYTES));
  library.func('fegetenv', 'int', ['void *'])(plain);
  const flushing = plain.slice();
  plain[MXCSR_WORD]! &= ~(DENORMALS_ARE_ZERO | FLUSH_TO_ZERO);
  flushing[MXCSR_WORD]! |= DENORMALS_ARE_ZERO | FLUSH_TO_ZERO;
  return (work) => {
    set(flushing);
    try {
      return work();
    } finally {
      set(plain);
    }
  };
}
