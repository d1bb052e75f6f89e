// A worker for the tests of the worker layer.
import { InvalidInputError, OverloadedError, RuntimeError } from '../../../dist/errors.js';
import { serveWorker, transferring } from '../../../dist/runtime/index.js';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

serveWorker(async (data, broadcast) => {
  if (data?.failSetup) throw new InvalidInputError('bad data', 'failSetup');
  if (data?.exitSetup) process.exit(3);
  if (data?.dieAfterMs) setTimeout(() => process.exit(4), data.dieAfterMs);
  // A handle that a careless room leaves open.
  setInterval(() => {}, 1000);
  return {
    methods: {
      echo: (value) => value,
      where: () => ({ data, argv: process.argv.length }),
      buffer: (length) => {
        const bytes = new Uint8Array(length).fill(7);
        return transferring({ bytes }, [bytes.buffer]);
      },
      length: (bytes) => bytes.byteLength,
      async count({ to, everyMs }, { emit, signal }) {
        for (let i = 0; i < to; i++) {
          if (signal.aborted) return `stopped: ${signal.reason.message}`;
          emit(i);
          await pause(everyMs);
        }
        return 'counted';
      },
      async forever(_, { signal }) {
        while (!signal.aborted) await pause(5);
        throw signal.reason;
      },
      fail({ kind }) {
        if (kind === 'input')
          throw new InvalidInputError('expected a number, got "x"', 'messages[0].n', {
            details: { got: 'x' },
          });
        if (kind === 'overloaded') throw new OverloadedError('queue is full', 1500);
        if (kind === 'cause') throw new RuntimeError('outer', { cause: new TypeError('inner') });
        if (kind === 'string') throw 'just text';
        throw Object.assign(new Error('plain'), { code: 'ENOENT', errno: -2 });
      },
      uncloneable: () => () => {},
      broadcast: (value) => broadcast(value),
      exit: (code) => process.exit(code),
      crash() {
        setImmediate(() => {
          throw new Error('boom');
        });
        return pause(10_000);
      },
      exhaust() {
        const kept = [];
        for (;;) kept.push(new Array(10_000).fill(Math.random()));
      },
      block(ms) {
        const end = Date.now() + ms;
        while (Date.now() < end);
      },
    },
    async close() {
      if (data?.slowCloseMs) await pause(data.slowCloseMs);
      broadcast('closing');
    },
  };
});
