// weights/: safetensors and GGUF files, quantisation, model manifests and their download.
// Files in; checked, named tensors out, by ranged reads.
// Never builds a graph, never trusts a header beyond the bytes that are there.

export type * from './tensor-source.js';
