import { Command } from 'commander';
import { homeFolder } from '../config/index.js';
import { ensureModel, preparePrecision } from '../model/index.js';
import { ensureDemoIndex, locateEncoder } from '../retrieval/index.js';
import { contextOf } from './context.js';
import { counted } from './counted.js';

/** Fetches and converts the configured models and builds the demo index, so that later starts find all ready. */
export function setupCommand(): Command {
  return new Command('setup')
    .description('fetch the models, convert them and build the demo index; safe to repeat and to interrupt')
    .action(async (_options, self: Command) => {
      const { config, output, signal } = contextOf(self);
      const home = homeFolder(config);
      const progress = output.progress();
      const options = { onProgress: progress.on, onNote: output.note, signal };
      try {
        const policy = await ensureModel(config.model.policy, home, options);
        const graphs = await preparePrecision(home, policy, config.engine.precision, options);
        const embedder = await locateEncoder(config, options);
        const demo = await ensureDemoIndex(config, options);
        progress.stop();
        output.result(
          {
            policy: policy.record.id,
            precision: graphs.precision,
            embedder: embedder.id,
            index: { name: demo.manifest.name, passages: demo.manifest.passages.count, built: demo.built },
          },
          [
            `policy    ${policy.record.id}, ${graphs.precision}`,
            `embedder  ${embedder.id}`,
            `index     ${demo.manifest.name}, ${counted(demo.manifest.passages.count, 'passage')}${demo.built ? ', built now' : ''}`,
          ].join('\n'),
        );
      } finally {
        progress.stop();
      }
    });
}
