import { Command } from 'commander';
import { createRetriever } from '../../retrieval/index.js';
import { contextOf } from '../context.js';
import { wholeNumber } from '../flag-values.js';
import { withProgress } from '../progress-rate.js';

interface SearchFlags {
  readonly index?: string;
  readonly kind?: string;
  readonly k: number;
}

export function searchCommand(): Command {
  return new Command('search')
    .description('search an index')
    .argument('<query...>', 'what to look for')
    .option('-i, --index <name>', 'name or folder (default: retrieval.index)')
    .option('--kind <kind>', 'hnsw, bm25, hybrid or remote (default: retrieval.kind)')
    .option('-k <count>', 'passages', wholeNumber(1), 3)
    .action(async (words: string[], flags: SearchFlags, self: Command) => {
      const context = contextOf(self, { 'retrieval.index': flags.index, 'retrieval.kind': flags.kind });
      await withProgress(context, async (onProgress) => {
        const retriever = await createRetriever(context.config, { onProgress, signal: context.signal });
        try {
          const [passages] = await retriever.search([words.join(' ')], flags.k, { signal: context.signal });
          const shown = (passages ?? []).map(
            ({ id, title, text, score }, i) =>
              `${i + 1}. ${title || id}  [${id}, ${score.toFixed(4)}]\n   ${text}`,
          );
          context.output.result(
            { index: retriever.info, snapshotId: retriever.snapshotId, passages },
            shown.length === 0 ? 'nothing found' : shown.join('\n'),
          );
        } finally {
          await retriever.close();
        }
      });
    });
}
