// Entry of the engine's worker thread.

import { availableParallelism } from 'node:os';
import { openRuntime, serveWorker } from '../runtime/index.js';
import { createTokenizer } from '../tokenizer/index.js';
import { AdapterStore } from './core/adapter-store.js';
import { calibrationSamples } from './core/cache-calibration.js';
import { EngineCore } from './core/engine-core.js';
import { openStepModel } from './core/step-model.js';
import type { EngineEvents, EngineMethods, EngineStart } from './messages.js';

serveWorker<EngineMethods, EngineStart, EngineEvents>(async ({ graphs, tokenizer, settings }, broadcast) => {
  const runtime = await openRuntime();
  const textTokenizer = createTokenizer(tokenizer);
  const model = await openStepModel(runtime, {
    graphs,
    slots: settings.maxSequences,
    capacity: settings.maxSequenceTokens,
    chunkTokens: settings.prefillChunkTokens,
    threads: settings.threads === 0 ? availableParallelism() : settings.threads,
    spinning: settings.spinning,
    samples: calibrationSamples(textTokenizer, graphs.config.eosTokenIds, settings.prefillChunkTokens),
  });
  const adapters = new AdapterStore(graphs.config);
  const core = new EngineCore({
    model,
    tokenizer: textTokenizer,
    eosTokenIds: graphs.config.eosTokenIds,
    adapters,
    settings,
    send: broadcast,
  });
  const running = core.run();
  return {
    methods: {
      describe: () => ({ onnxruntimeVersion: runtime.version }),
      commands: (commands) => core.accept(commands),
      addAdapter: (adapter) => core.addAdapter(adapter),
      dropAdapter: ({ version }) => core.dropAdapter(version),
      profile: () => core.profile,
    },
    async close() {
      core.stop();
      await running;
      model.close();
    },
  };
});
