// The same weights for both sides: our q8 values as a Q8_0 GGUF, and random rank-16 adapters in both formats.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type DecoderConfig,
  type LinearModule,
  linearShape,
  type StoredModel,
} from '#searchloop/model/index.js';
import { type GgufEntry, openGguf, writeGguf, writeSafetensors } from '#searchloop/weights/index.js';
import { xorshift32 } from '../random.js';

const MODULES: Readonly<Record<LinearModule, { peft: string; gguf: string }>> = {
  q: { peft: 'self_attn.q_proj', gguf: 'attn_q' },
  k: { peft: 'self_attn.k_proj', gguf: 'attn_k' },
  v: { peft: 'self_attn.v_proj', gguf: 'attn_v' },
  o: { peft: 'self_attn.o_proj', gguf: 'attn_output' },
  gate: { peft: 'mlp.gate_proj', gguf: 'ffn_gate' },
  up: { peft: 'mlp.up_proj', gguf: 'ffn_up' },
  down: { peft: 'mlp.down_proj', gguf: 'ffn_down' },
};

const RANK = 16;

/**
 * Writes the model as llama.cpp reads it, matrices in Q8_0 with the very values that our q8 engine uses (the
 * quantiser works on rows, so the file's order of rows of q and k does not matter). GGUF sources only.
 */
export async function writeQ8Gguf(model: StoredModel, folder: string): Promise<string> {
  const target = join(folder, `${model.record.id}.q8_0.gguf`);
  if (existsSync(target)) return target;
  mkdirSync(folder, { recursive: true });
  const source = openGguf(model.file('weights') as string);
  try {
    const entries = new Map(source.entries);
    entries.set('general.file_type', { type: 'uint32', items: null, value: 7 } as GgufEntry);
    const tensors = [...source.tensors.values()].map(({ name, shape }) => ({
      name,
      shape,
      type: shape.length === 2 ? ('Q8_0' as const) : ('F32' as const),
      data: () => source.readFloat32(name),
    }));
    await writeGguf(target, entries, tensors as Parameters<typeof writeGguf>[2]);
  } finally {
    source.close();
  }
  return target;
}

/** Values of a small generator, so that both formats hold the same numbers. */
function gaussian(count: number, seed: number, scale: number): Float32Array {
  const uniform = xorshift32(seed * 2654435761);
  return Float32Array.from({ length: count }, () => (uniform() + uniform() + uniform() - 1.5) * scale);
}

export interface AdapterPair {
  /** PEFT folder. */
  readonly peft: string;
  /** GGUF adapter. */
  readonly gguf: string;
}

export async function writeAdapterPair(
  config: DecoderConfig,
  folder: string,
  seed: number,
): Promise<AdapterPair> {
  const peft = join(folder, `adapter-${seed}`);
  const gguf = join(folder, `adapter-${seed}.gguf`);
  mkdirSync(peft, { recursive: true });
  const matrices = [];
  for (let layer = 0; layer < config.layers; layer++)
    for (const [module, names] of Object.entries(MODULES) as [
      LinearModule,
      { peft: string; gguf: string },
    ][]) {
      const [output, input] = linearShape(config, module);
      const number = layer * 16 + Object.keys(MODULES).indexOf(module);
      matrices.push(
        {
          ...names,
          layer,
          part: 'A',
          shape: [RANK, input],
          data: gaussian(RANK * input, seed * 7919 + number * 2, 0.02),
        },
        {
          ...names,
          layer,
          part: 'B',
          shape: [output, RANK],
          data: gaussian(output * RANK, seed * 7919 + number * 2 + 1, 0.02),
        },
      );
    }
  await writeSafetensors(
    join(peft, 'adapter_model.safetensors'),
    matrices.map(({ peft: name, layer, part, shape, data }) => ({
      name: `base_model.model.model.layers.${layer}.${name}.lora_${part}.weight`,
      type: 'F32' as const,
      shape,
      data: () => data,
    })),
  );
  writeFileSync(
    join(peft, 'adapter_config.json'),
    JSON.stringify({
      peft_type: 'LORA',
      r: RANK,
      lora_alpha: 32,
      target_modules: Object.values(MODULES).map(({ peft: name }) => name.split('.')[1]),
    }),
  );
  const text = (value: string): GgufEntry => ({ type: 'string', items: null, value }) as GgufEntry;
  await writeGguf(
    gguf,
    new Map<string, GgufEntry>([
      ['general.architecture', text(config.architecture)],
      ['general.type', text('adapter')],
      ['adapter.type', text('lora')],
      ['adapter.lora.alpha', { type: 'float32', items: null, value: 32 } as GgufEntry],
    ]),
    matrices.map(({ gguf: name, layer, part, shape, data }) => ({
      name: `blk.${layer}.${name}.weight.lora_${part.toLowerCase()}`,
      type: 'F32' as const,
      shape,
      data: () => data,
    })),
  );
  return { peft, gguf };
}
