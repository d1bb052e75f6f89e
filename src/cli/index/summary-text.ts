import type { IndexSummary } from '../../retrieval/index.js';
import { counted } from '../counted.js';

/** An index in one line. */
export function summaryText({ folder, manifest, passageCount }: IndexSummary): string {
  const { name, embedder, graph } = manifest;
  return `${name}: ${counted(passageCount, 'passage')}, ${embedder.id} (${graph.dimension}), ${folder}`;
}
