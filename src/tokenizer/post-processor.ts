// What a tokenizer puts around one sequence of ids, such as [CLS] and [SEP] or a begin token.

import { FileFormatError, UnsupportedError } from '../errors.js';
import type { PartConfig } from './tokenizer-json.js';

export interface Wrapping {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

const NOTHING: Wrapping = { before: [], after: [] };

interface TemplatePiece {
  readonly SpecialToken?: { readonly id: string };
  readonly Sequence?: unknown;
}

function templateWrapping(config: PartConfig): Wrapping {
  const known = (config['special_tokens'] ?? {}) as Record<string, { ids?: number[] }>;
  const before: number[] = [];
  const after: number[] = [];
  let seen = false;
  for (const piece of (config['single'] ?? []) as TemplatePiece[]) {
    if (piece.SpecialToken === undefined) {
      seen = true;
      continue;
    }
    const ids = known[piece.SpecialToken.id]?.ids;
    if (ids === undefined)
      throw new FileFormatError(`tokenizer.json: post_processor lacks ids of "${piece.SpecialToken.id}"`);
    (seen ? after : before).push(...ids);
  }
  return { before, after };
}

const pairId = (pair: unknown): number => {
  const id = Array.isArray(pair) ? pair[1] : undefined;
  if (typeof id === 'number') return id;
  throw new FileFormatError('tokenizer.json: post_processor cls and sep must be pairs of token and id');
};

/**
 * @param config the `post_processor` of tokenizer.json
 * @throws {UnsupportedError} with the name of an unknown part
 */
export function wrappingOf(config: PartConfig | null): Wrapping {
  switch (config?.type) {
    case undefined:
    case 'ByteLevel':
      return NOTHING;
    case 'TemplateProcessing':
      return templateWrapping(config as PartConfig);
    case 'BertProcessing':
    case 'RobertaProcessing':
      return { before: [pairId(config?.['cls'])], after: [pairId(config?.['sep'])] };
    case 'Sequence':
      return ((config?.['processors'] ?? []) as PartConfig[]).map(wrappingOf).reduce(
        (inner, outer) => ({
          before: [...outer.before, ...inner.before],
          after: [...inner.after, ...outer.after],
        }),
        NOTHING,
      );
    default:
      throw new UnsupportedError(`tokenizer.json: post-processor "${config?.type}" is not supported`);
  }
}
