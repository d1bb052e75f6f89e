import type { SessionOptions } from '../session.js';

/** The config entries (`session.*` of onnxruntime) that session options stand for. */
export const sessionEntries = ({ spinning = true, config }: SessionOptions): Record<string, string> => ({
  // Denormal numbers of real weights cost a tenth and more, and change no result that matters.
  'session.set_denormal_as_zero': '1',
  'session.intra_op.allow_spinning': spinning ? '1' : '0',
  ...config,
});
