// Entry of a thread that runs bindings of another one.

import { serveWorker } from '../workers/serve.js';
import { openContext } from './context.js';
import type { RunnerMethods } from './runner.js';

serveWorker<RunnerMethods>(async () => {
  const { api, library } = await openContext();
  return {
    methods: {
      run({ session, runOptions, binding }) {
        library.flushingDenormals(() => api.runWithBinding(session, runOptions, binding));
      },
    },
  };
});
