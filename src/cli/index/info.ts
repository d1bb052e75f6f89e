import { Command } from 'commander';
import { indexesFolder } from '../../config/index.js';
import { describeIndex, type IndexSummary, indexFolder } from '../../retrieval/index.js';
import { contextOf } from '../context.js';

export function infoCommand(): Command {
  return new Command('info')
    .description('what an index holds and how it was built')
    .argument('[index]', 'name or folder (default: retrieval.index)')
    .action(async (name: string | undefined, _flags: unknown, self: Command) => {
      const { config, output } = contextOf(self);
      const summary = await describeIndex(indexFolder(indexesFolder(config), name ?? config.retrieval.index));
      output.result(summary, infoText(summary));
    });
}

function infoText({ folder, manifest, passageCount, snapshotId, revision }: IndexSummary): string {
  const { source, embedder, graph } = manifest;
  const rows: [string, string | number][] = [
    ['index', `${manifest.name} (${folder})`],
    ['passages', passageCount],
    ['snapshot', snapshotId],
    ['changes', revision],
    ['built', `${manifest.createdAt} from ${source.name} (${source.kind}, ${source.bytes} bytes)`],
    ['left out', `${source.skippedEntries} bad, ${source.duplicateEntries} repeated entries`],
    ['embedder', `${embedder.id} (${embedder.digest.slice(0, 12)})`],
    [
      'graph',
      `${graph.metric}, dimension ${graph.dimension}, M ${graph.M}, efConstruction ${graph.efConstruction}`,
    ],
    ['files', `${manifest.passages.file}, ${graph.file} (${graph.bytes} bytes)`],
  ];
  return rows.map(([key, value]) => `${key.padEnd(9)} ${value}`).join('\n');
}
