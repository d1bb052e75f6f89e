import { CancelledError } from '../errors.js';
import type { OnProgress } from '../util/progress.js';
import { embedAdditions } from './embedder/embed-additions.js';
import type { Embedder } from './embedder/embedder.js';
import { LocalIndex } from './folder/local-index.js';
import { checkEmbedder } from './folder/manifest.js';
import { openReader } from './inputs/registry.js';
import type { PassageInput } from './passages/passage-store.js';
import type { ChangeResult, IndexState } from './worker/messages.js';

const PASSAGES_PER_CHANGE = 256;

export interface AddOptions {
  readonly folder: string;
  /** File or folder of passages, in any form that a build reads. */
  readonly input: string;
  readonly embedder: Embedder;
  readonly skipBad?: boolean;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

/**
 * Adds passages to an index on disk; ids that are there are replaced. A retriever that has the index open follows.
 * Stopped half-way, what was added stays, and adding the same input again ends the same.
 */
export async function addToIndex(options: AddOptions): Promise<ChangeResult & IndexState> {
  const { folder, embedder, onProgress, signal } = options;
  const reader = await openReader(options.input);
  const index = await LocalIndex.open(folder, { withGraph: true });
  try {
    checkEmbedder(index.manifest, embedder.info);
    let added = 0;
    let pending: PassageInput[] = [];
    const flush = async (): Promise<void> => {
      added += (await index.change(await embedAdditions(embedder, pending, signal), [])).added;
      pending = [];
      onProgress?.({ stage: 'add', done: added, total: null, unit: 'passages' });
    };
    const onBad = (error: Error): void => {
      if (options.skipBad !== true) throw error;
    };
    for await (const { passage } of reader.read({ from: null, onBad, signal })) {
      pending.push(passage);
      if (pending.length < PASSAGES_PER_CHANGE) continue;
      await flush();
      if (signal?.aborted) throw new CancelledError();
    }
    await flush();
    await index.fold();
    return { added, removed: 0, ...stateOf(index) };
  } finally {
    index.close();
  }
}

/** Removes passages from an index on disk. @returns also the ids that it has no passage of */
export async function removeFromIndex(
  folder: string,
  ids: readonly string[],
): Promise<ChangeResult & IndexState & { readonly unknown: readonly string[] }> {
  const index = await LocalIndex.open(folder, { withGraph: true });
  try {
    const unknown = ids.filter((id) => !index.has(id));
    const result = await index.change([], ids);
    if (result.removed > 0) await index.fold();
    return { ...result, unknown, ...stateOf(index) };
  } finally {
    index.close();
  }
}

function stateOf(index: LocalIndex): IndexState {
  return { name: index.manifest.name, passageCount: index.count, snapshotId: index.snapshotId };
}
