// llama.cpp through node-llama-cpp, driven by one JSON command a line on stdin; the commands are those of
// llama_cpp_rival.py. argv[2] is the folder whose node_modules holds node-llama-cpp.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const require = createRequire(join(process.argv[2], 'package.json'));
const { getLlama, version } = await import(pathToFileURL(require.resolve('node-llama-cpp')).href).catch(
  () => import(pathToFileURL(join(process.argv[2], 'node_modules/node-llama-cpp/dist/index.js')).href),
);

let context;
let model;
let sequences = [];

function randomTokens(count, seed) {
  // A small multiplicative generator: the ids need not match the other rival's, only be spread out.
  let state = (seed * 2654435761 + 12345) >>> 0;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return 100 + (state % 48900);
  });
}

async function open(command) {
  const llama = await getLlama({
    gpu: false,
    maxThreads: command.threads,
    build: 'never',
    logLevel: 'error',
  });
  model = await llama.loadModel({ modelPath: command.model });
  context = await model.createContext({
    sequences: command.sequences,
    contextSize: command.capacity,
    threads: command.threads,
    batchSize: 512,
    ...(command.adapter ? { lora: { adapters: [{ filePath: command.adapter }] } } : {}),
  });
  sequences = Array.from({ length: command.sequences }, () => context.getSequence());
  return { ok: true, version: version ?? 'unknown' };
}

/** The context is read in once; later calls cut the sequences back to it, so that rounds stay short. */
async function decode({ sequences: count, context: length, tokens }) {
  const runs = [];
  for (let index = 0; index < count; index++) {
    const sequence = sequences[index];
    if (sequence.nextTokenIndex < length)
      await sequence.evaluateWithoutGeneratingNewTokens(randomTokens(length, index + 1));
    await sequence.eraseContextTokenRanges([{ start: length, end: sequence.nextTokenIndex }]);
    runs.push(sequence.evaluate([1000 + index], { temperature: 0, yieldEogToken: true }));
  }
  await Promise.all(runs.map(async (iterator) => [await iterator.next(), await iterator.next()]));
  const begin = performance.now();
  await Promise.all(
    runs.map(async (iterator) => {
      for (let index = 0; index < tokens; index++) await iterator.next();
    }),
  );
  const seconds = (performance.now() - begin) / 1000;
  await Promise.all(runs.map((iterator) => iterator.return()));
  return { seconds, tokens: tokens * count };
}

async function prefill({ tokens }) {
  // The last sequence is kept for this, so that the contexts of `decode` stay.
  const last = sequences.at(-1);
  await last.clearHistory();
  const begin = performance.now();
  const iterator = last.evaluate(randomTokens(tokens, 7), { temperature: 0, yieldEogToken: true });
  await iterator.next();
  const seconds = (performance.now() - begin) / 1000;
  await iterator.return();
  return { seconds, tokens };
}

const operations = { open, decode, prefill };

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let answer;
  try {
    if (command.op === 'close') process.exit(0);
    answer = await operations[command.op](command);
  } catch (error) {
    answer = { error: String(error?.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
