// Tasks for the tests of the pool.
import { readFileSync, readlinkSync } from 'node:fs';
import { threadId } from 'node:worker_threads';
import { InvalidInputError } from '../../../dist/errors.js';
import { allocate, openRuntime, poolTask } from '../../../dist/runtime/index.js';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const actions = {
  square: ({ value }) => value * value,
  thread: async ({ ms }) => {
    await pause(ms);
    return threadId;
  },
  nice: () => {
    const thread = readlinkSync('/proc/thread-self').split('/').pop();
    return Number(readFileSync(`/proc/self/task/${thread}/stat`, 'utf8').split(') ')[1].split(' ')[16]);
  },
  async count({ to }, { report }) {
    for (let i = 0; i < to; i++) report(i);
    return to;
  },
  async wait(_, { signal, report }) {
    report(threadId);
    while (!signal.aborted) await pause(2);
    throw signal.reason;
  },
  spin(_, { throwIfCancelled, report }) {
    report(threadId);
    for (;;) throwIfCancelled();
  },
  deaf(_, { report }) {
    report(threadId);
    for (;;);
  },
  fail() {
    throw new InvalidInputError('not this', 'task.value');
  },
  exhaust() {
    const kept = [];
    for (;;) kept.push(new Array(10_000).fill(Math.random()));
  },
  crashLater: () => {
    setTimeout(() => {
      throw new Error('late');
    }, 10);
    return threadId;
  },
  exit: () => process.exit(5),
  async leak({ graph }) {
    const session = await (await openRuntime()).openSession(graph, { threads: 1 });
    const binding = session.createBinding();
    binding.bindInput('x', allocate('float32', [1, 512]));
    binding.bindOutput('y', allocate('float32', [1, 512]));
    await binding.run();
    process.exit(0);
  },
};

export default poolTask((task, context) => actions[task.action](task, context));
