import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { CancelledError, IntegrityError } from '../../errors.js';
import {
  buildEncoderGraph,
  describeEncoder,
  type EncoderGraph,
  encoderWeights,
  openModel,
  type StoredModel,
} from '../../model/index.js';
import { type Binding, openRuntime } from '../../runtime/index.js';
import { createTokenizer, type Tokenizer } from '../../tokenizer/index.js';
import { jsonObject, readJsonFile } from '../../util/json-file.js';
import { claim, type EmbedderConventions } from '../../weights/index.js';
import type { Embedder, TextKind } from './embedder.js';
import { conventionsOf, type EncoderSource, encoderSource } from './encoder-source.js';
import { batchByLength, type TokenBatch } from './token-batches.js';

/** Padded tokens of one run: few enough that the widest states of a small encoder stay in a core's cache. */
const BATCH_TOKENS = 512;

export interface EncoderOptions {
  /** Threads of the session; 0 is the number of cores. */
  readonly threads: number;
}

/**
 * Opens an encoder model as an embedder of this thread: prefix, tokens without control tokens from the text, cut to
 * the model's length, pooled and normalised as its conventions say. Runs block the thread, so it belongs in a worker.
 * @throws {IntegrityError} the model is not the one that was located
 */
export async function openEncoderEmbedder(source: EncoderSource, options: EncoderOptions): Promise<Embedder> {
  const model = await openModel(source.home, source.id);
  const { digest } = encoderSource(source.home, model);
  if (digest !== source.digest)
    throw new IntegrityError(
      `embedding model "${source.id}": expected digest ${source.digest}, came ${digest}`,
    );
  const conventions = conventionsOf(model);
  const tokenizer = createTokenizer(await model.readTokenizer());
  const graph = await prepareGraph(source.home, model, conventions);
  const runtime = await openRuntime();
  const threads = options.threads === 0 ? availableParallelism() : options.threads;
  const session = await runtime.openSession(graph.file, { threads, spinning: false });
  const binding = session.createBinding();
  const { dimension } = graph;
  const maxTokens = Math.min(conventions.maxTokens, graph.config.maxPositions);
  const encode = createEncode(tokenizer, conventions, maxTokens);
  return {
    info: { id: source.id, digest, dimension },
    async embed(texts, kind, { signal, onDone } = {}) {
      const matrix = new Float32Array(texts.length * dimension);
      const ids = texts.map((text) => encode(text, kind));
      const lengths = ids.map((row) => row.length);
      let done = 0;
      for (const batch of batchByLength(lengths, BATCH_TOKENS)) {
        if (signal?.aborted) throw new CancelledError();
        const vectors = await run(binding, ids, batch, dimension);
        for (const [i, row] of batch.rows.entries())
          matrix.set(vectors.subarray(i * dimension, (i + 1) * dimension), row * dimension);
        done += batch.rows.length;
        onDone?.(done);
        await setImmediate();
      }
      return matrix;
    },
    async close() {
      binding.close();
      session.close();
    },
  };
}

/** Ids of a text between the model's own marks, at most `maxTokens` of them. */
function createEncode(
  tokenizer: Tokenizer,
  conventions: EmbedderConventions,
  maxTokens: number,
): (text: string, kind: TextKind) => number[] {
  const { queryPrefix, passagePrefix } = conventions;
  const room = maxTokens - tokenizer.wrap([]).length;
  return (text, kind) => {
    const prefix = kind === 'query' ? queryPrefix : passagePrefix;
    return tokenizer.wrap(tokenizer.encodePlain(prefix + text).slice(0, room));
  };
}

/** @returns f32 [rows, dimension] */
async function run(
  binding: Binding,
  ids: readonly (readonly number[])[],
  { rows, length }: TokenBatch,
  dimension: number,
): Promise<Float32Array> {
  const tokens = new BigInt64Array(rows.length * length);
  const mask = new BigInt64Array(rows.length * length);
  for (const [i, row] of rows.entries())
    for (const [at, id] of (ids[row] as number[]).entries()) {
      tokens[i * length + at] = BigInt(id);
      mask[i * length + at] = 1n;
    }
  const data = new Float32Array(rows.length * dimension);
  const shape = [rows.length, length];
  binding.bindInput('input_ids', { type: 'int64', shape, data: tokens });
  binding.bindInput('attention_mask', { type: 'int64', shape, data: mask });
  binding.bindOutput('embeddings', { type: 'float32', shape: [rows.length, dimension], data });
  await binding.run();
  return data;
}

/** The graph in the model's folder; one process builds it, the others wait and find it. */
async function prepareGraph(
  home: string,
  model: StoredModel,
  pooling: EmbedderConventions,
): Promise<EncoderGraph> {
  const { id, digest } = model.record;
  const held = await claim({
    folder: join(home, 'models', '.partial'),
    key: `prepare-${id}-encoder`,
    kind: 'file',
  });
  const source = model.openWeights();
  try {
    const config = describeEncoder(await readJsonFile(model.file('config') as string, jsonObject));
    return await buildEncoderGraph({
      weights: encoderWeights(config, source),
      pooling,
      folder: join(model.folder, 'graphs'),
      sourceDigest: digest,
    });
  } finally {
    source.close();
    await held.release(true);
  }
}
