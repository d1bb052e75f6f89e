// A worker with one session of its own, for tests of sessions in many threads.
import { allocate, openRuntime, serveWorker } from '../../../dist/runtime/index.js';

serveWorker(async ({ graph, kind, size, threads = 1 }) => {
  const runtime = await openRuntime(kind);
  const session = await runtime.openSession(graph, { threads, spinning: false });
  const binding = session.createBinding();
  const x = allocate('float32', [size, size]);
  const y = allocate('float32', [size, size]);
  binding.bindInput('x', x);
  binding.bindOutput('y', y);
  return {
    methods: {
      async run({ times, value }) {
        x.data.fill(value);
        for (let i = 0; i < times; i++) await binding.run();
        return [y.data[0], y.data[y.data.length - 1]];
      },
      handle: () => binding.terminateHandle,
      javaScriptDenormal: (value) => value * 1,
    },
    close: () => session.close(),
  };
});
