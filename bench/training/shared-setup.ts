// The same work for both sides: the values that the trainer computes with, as a folder that transformers loads; one
// adapter; one text with a third of its tokens to learn from.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '#searchloop/config/index.js';
import {
  hubLayerTensor,
  hubModelTensor,
  type LayerPart,
  type ModelPart,
  quantisedValues,
  type StoredModel,
} from '#searchloop/model/index.js';
import { createTokenizer } from '#searchloop/tokenizer/index.js';
import { hubConfig } from '#searchloop/training/export/hub-config.js';
import { exportedTensors } from '#searchloop/training/export/tensor-names.js';
import { openDecoderWeights } from '#searchloop/training/index.js';
import { writeSafetensors } from '#searchloop/weights/index.js';
import { writeAdapterPair } from '../engine/shared-weights.js';

export interface TrainingSetup {
  /** Folder that transformers loads: the dequantised q8 values in float32. */
  readonly hub: string;
  /** PEFT folder, rank 16 on all linear layers, alpha 32. */
  readonly adapter: string;
}

export async function writeSetup(model: StoredModel, folder: string): Promise<TrainingSetup> {
  const hub = join(folder, `${model.record.id}.q8-values`);
  const source = model.openWeights();
  try {
    const weights = openDecoderWeights(model, source);
    const { peft: adapter } = await writeAdapterPair(weights.config, folder, 1);
    if (!existsSync(join(hub, 'config.json'))) {
      mkdirSync(hub, { recursive: true });
      const tensors = exportedTensors(quantisedValues(weights, 'q8')).map(({ layer, part, shape, data }) => ({
        name: layer === null ? hubModelTensor(part as ModelPart) : hubLayerTensor(layer, part as LayerPart),
        type: 'F32' as const,
        shape,
        data,
      }));
      await writeSafetensors(join(hub, 'model.safetensors'), tensors, { format: 'pt' });
      // Last: without it the folder is made again.
      writeFileSync(join(hub, 'config.json'), JSON.stringify(hubConfig(weights.config, 'F32')));
    }
    return { hub, adapter };
  } finally {
    source.close();
  }
}

export interface Text {
  readonly tokenIds: readonly number[];
  /** Indices of the tokens that are learnt, a third of all, in runs as turns of a policy are. */
  readonly targets: readonly number[];
}

const RUN = 32;

/** Passages of the demo corpus, cut to texts of one length. */
export async function textsOf(model: StoredModel, count: number, length: number): Promise<Text[]> {
  const tokenizer = createTokenizer(await model.readTokenizer());
  const corpus = readFileSync(join(packageRoot, 'index', 'demo', 'corpus.jsonl'), 'utf8')
    .trim()
    .split('\n');
  const tokenIds: number[] = [];
  for (const line of corpus) {
    if (tokenIds.length >= count * length) break;
    tokenIds.push(...tokenizer.encodePlain(`${(JSON.parse(line) as { text: string }).text}\n`));
  }
  if (tokenIds.length < count * length)
    throw new Error(`the demo corpus has ${tokenIds.length} tokens, not ${count * length}`);
  const targets = Array.from({ length }, (_, t) => t).filter((t) => t > 0 && Math.floor(t / RUN) % 3 === 1);
  return Array.from({ length: count }, (_, i) => ({
    tokenIds: tokenIds.slice(i * length, (i + 1) * length),
    targets,
  }));
}
