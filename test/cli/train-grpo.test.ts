// A run of reinforcement learning by the command line: a start, a reference, validation, and what may not change after it.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from '../../src/cli/index.js';
import { isValidation } from '../../src/evaluation/index.js';
import { LockStepRollouts } from '../../src/loop/index.js';
import { importModel } from '../../src/model/index.js';
import { openSafetensorsFile, writeSafetensors } from '../../src/weights/index.js';
import { madeExamples } from '../training/support/examples.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-cli-grpo-'));
const home = join(folder, 'home');
const models = join(__dirname, '..', 'fixtures', 'models');
beforeAll(async () => {
  await importModel(join(models, 'tiny-llama'), home, { id: 'tiny' });
  const embedder = { pooling: 'mean', normalise: true, maxTokens: 48 } as const;
  await importModel(join(models, 'tiny-bert'), home, { id: 'tiny-bert', embedder });
});
afterAll(() => rmSync(folder, { recursive: true }));
jest.setTimeout(600_000);

async function cli(...args: string[]): Promise<{ readonly code: number; readonly stderr: string }> {
  let stderr = '';
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    jest.spyOn(process[name], 'write').mockImplementation((text) => {
      if (name === 'stderr') stderr += String(text);
      return true;
    }),
  );
  const before = process.exitCode;
  try {
    return { code: await runCli([...args, ...set(SETTINGS)]), stderr };
  } finally {
    process.exitCode = before;
    for (const spy of spies) spy.mockRestore();
  }
}

const set = (settings: Readonly<Record<string, unknown>>): string[] =>
  Object.entries(settings).flatMap(([key, value]) => ['-s', `${key}=${JSON.stringify(value)}`]);

const SETTINGS = {
  'paths.home': home,
  'model.policy': 'tiny',
  'model.embedder': 'tiny-bert',
  'engine.precision': 'fp32',
  'engine.threads': 1,
  'training.threads': 1,
};

const index = join(folder, 'index');
const adapter = join(folder, 'sft', 'adapter');
const reference = join(folder, 'reference');

/** What a run of the command needs beforehand: passages, questions of both parts, an adapter that is not zero. */
async function prepare(): Promise<string> {
  const corpus = join(folder, 'corpus.jsonl');
  const passages = ['river', 'lake', 'mountain', 'city'].map((word, i) =>
    JSON.stringify({ id: `p${i}`, contents: `"Title ${i}"\nThe ${word} of number ${i}` }),
  );
  writeFileSync(corpus, passages.join('\n'));
  expect(await cli('index', 'build', '--input', corpus, '--output', index)).toMatchObject({ code: 0 });
  const ids = Array.from({ length: 100 }, (_, i) => `n${i}`);
  const chosen = [
    ...ids.filter(isValidation).slice(0, 2),
    ...ids.filter((id) => !isValidation(id)).slice(0, 4),
  ];
  const questions = join(folder, 'questions.jsonl');
  const lines = chosen.map((id) => ({ id, question: 'Which river?', golden_answers: ['the river'] }));
  writeFileSync(questions, lines.map((line) => JSON.stringify(line)).join('\n'));
  const data = join(folder, 'data.jsonl');
  const examples = madeExamples(4, 500).map(({ id, tokenIds, lossMask }) =>
    JSON.stringify({ id, tokenIds: [...tokenIds], lossMask: [...lossMask] }),
  );
  writeFileSync(data, examples.join('\n'));
  const sft = { 'training.rank': 2, 'training.alpha': 4, 'training.learningRate': 0.01 };
  const trained = await cli('train', 'sft', '-d', data, '-o', join(folder, 'sft'), ...set(sft));
  expect(trained).toMatchObject({ code: 0 });
  return questions;
}

/** The adapter again, written as twice its B under half its alpha. */
async function writeReference(factor = 2): Promise<void> {
  const source = openSafetensorsFile(join(adapter, 'adapter_model.safetensors'));
  const tensors = [...source.tensors.values()].map(({ name, shape }) => ({
    name,
    shape,
    type: 'F32' as const,
    data: () => source.readFloat32(name).map((value) => (name.includes('lora_B') ? factor * value : value)),
  }));
  await writeSafetensors(join(reference, 'adapter_model.safetensors'), tensors);
  source.close();
  const config = JSON.parse(readFileSync(join(adapter, 'adapter_config.json'), 'utf8'));
  writeFileSync(
    join(reference, 'adapter_config.json'),
    JSON.stringify({ ...config, lora_alpha: config.lora_alpha / 2 }),
  );
}

const rowsOf = (run: string, file: string) =>
  readFileSync(join(run, file), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, number>);

test('grpo: from an adapter, against a reference of another scale; what differs on --resume is named', async () => {
  const questions = await prepare();
  await writeReference();
  const run = join(folder, 'run');
  const sizes = {
    'engine.maxSequenceTokens': 512,
    'training.reference': reference,
    'training.batchSequences': 8,
    'training.groupSize': 2,
    'training.steps': 1,
    'training.actionBudget': 1,
    'training.turnTokens': 8,
    'training.observationTokens': 96,
    'training.rolloutSequences': 4,
    'training.validateEvery': 1,
    'training.validationQuestions': 2,
    // Nothing is answered rightly here: only the KL acts.
    'training.equalGroups': 'keep',
  };
  const grpo = (output: string, more: Readonly<Record<string, unknown>>, ...args: string[]) =>
    cli(
      ...['train', 'grpo', '-d', questions, '-o', output, '-a', adapter, '--index', index, ...args],
      ...set({ ...sizes, ...more }),
    );
  const rolled = jest.spyOn(LockStepRollouts.prototype, 'roll');
  expect(await grpo(run, {})).toMatchObject({ code: 0 });
  // A step of four questions: all of the training part, none of the other.
  const asked = rolled.mock.calls.flatMap(([jobs]) => jobs.map(({ question }) => question.id));
  rolled.mockRestore();
  expect(asked).toHaveLength(8);
  expect(new Set(asked).size).toBe(4);
  expect(asked.filter(isValidation)).toEqual([]);
  expect(rowsOf(run, 'metrics.jsonl')).toMatchObject([
    { step: 1, kl: 0, rollouts: 8, quarantined: 0, updates: 1, engineGap: expect.any(Number) },
  ]);
  expect(rowsOf(run, 'validation.jsonl')).toMatchObject([
    { step: 0, questions: 2 },
    { step: 1, questions: 2 },
  ]);
  const { identity } = JSON.parse(readFileSync(join(run, 'run.json'), 'utf8'));
  expect(identity).toMatchObject({ rank: 2, alpha: 4, retriever: 'hnsw', engineSequenceTokens: 512 });

  const resume = (more: Readonly<Record<string, unknown>>, ...args: string[]) =>
    grpo(run, { 'training.steps': 2, ...more }, '--resume', ...args);
  expect(await resume({}, '--retrieval', 'bm25')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/retriever: "hnsw", now "bm25"/),
  });
  expect(await resume({ 'training.rolloutSequences': 3, 'training.validationQuestions': 1 })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/rolloutSequences: 4, now 3\n {2}validationQuestions: 2, now 1/),
  });
  await writeReference(3);
  expect(await resume({})).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/reference: "\w+", now "/),
  });

  const evaluation = (ef: number) => {
    const sizes = { 'engine.maxSequenceTokens': 512, 'rollout.turnTokens': 2, 'retrieval.ef': ef };
    const flags = ['-m', 'rag', '--adapter', 'base', '--limit', '1', '-o', join(folder, 'evaluation')];
    return cli('evaluate', '--data', questions, '--index', index, ...flags, ...set(sizes));
  };
  expect(await evaluation(256)).toMatchObject({ code: 0 });
  expect(await evaluation(512)).toMatchObject({ code: 1, stderr: expect.stringMatching(/other settings/) });

  const other = join(folder, 'other');
  expect(await grpo(other, { 'training.rank': 3 })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/training.rank 3: the adapter decides, and .* has 2/),
  });
  expect(await grpo(other, { 'training.maxSequenceTokens': 700 })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/expected at most engine.maxSequenceTokens, which is 512/),
  });
  writeFileSync(questions, readFileSync(questions, 'utf8').split('\n').slice(2).join('\n'));
  expect(await grpo(other, {})).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/no question of the validation part, but training.validateEvery is 1/),
  });
});
