// Rollouts with search over the demo index, our engine beside llama.cpp under the very same loop.
//
//   npm run bench -- rollouts [--questions 16] [--rounds 3]

import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { homeFolder, loadConfig, packageRoot } from '#searchloop/config/index.js';
import { createEngine, type Generator, RAW_POLICY } from '#searchloop/engine/index.js';
import { ensureModel, preparePrecision } from '#searchloop/model/index.js';
import { createRetriever, ensureDemoIndex } from '#searchloop/retrieval/index.js';
import { createRolloutRunner, loadPrompts, type RolloutRunner } from '#searchloop/rollout/index.js';
import { createTokenizer } from '#searchloop/tokenizer/index.js';
import { eachOf } from '#searchloop/util/side-by-side.js';
import { demoQuestions } from './demo-questions.js';
import { writeQ8Gguf } from './engine/shared-weights.js';
import { type Figure, median, note, printReport } from './report.js';
import { installLlamaCppPython } from './rivals/install.js';
import { startLlamaGenerator } from './rivals/llama-generator.js';

const AT_ONCE = [1, 4, 16] as const;
const CAPACITY = 2048;
const GOAL = 1.5;

interface Sample {
  readonly perMinute: number;
  readonly tokens: number;
  readonly searches: number;
}

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { questions: { type: 'string', default: '16' }, rounds: { type: 'string', default: '3' } },
  });
  const config = loadConfig();
  const home = homeFolder(config);
  const model = await ensureModel('smollm2-135m-instruct', home);
  const graphs = await preparePrecision(home, model, 'q8');
  const gguf = await writeQ8Gguf(model, join(home, 'bench'));
  const source = await model.readTokenizer();
  const tokenizer = createTokenizer(source);
  await ensureDemoIndex(config);
  const retriever = await createRetriever(config);
  const settings = { ...config.engine, maxSequences: 16, maxSequenceTokens: CAPACITY };
  const ours = await createEngine({ modelId: model.record.id, graphs, tokenizer: source, settings });
  const rivals = await Promise.all(
    [true, false].map(async (unified) => ({
      name: `llama-cpp-python ${unified ? 'unified' : 'split'}`,
      generator: await startLlamaGenerator({
        python: installLlamaCppPython(join(home, 'bench')),
        script: join(packageRoot, 'bench', 'rivals', 'llama_cpp_sequences.py'),
        model: gguf,
        threads: availableParallelism(),
        sequences: 16,
        capacity: CAPACITY,
        unified,
        tokenizer,
        info: { ...ours.info, maxSequenceTokens: CAPACITY },
      }),
    })),
  );
  const runnerOn = (generator: Generator): RolloutRunner =>
    createRolloutRunner({
      generator,
      retriever,
      tokenizer,
      config: config.rollout,
      prompts: loadPrompts(config.rollout),
    });
  const sides = [{ name: 'ours', generator: ours as Generator }, ...rivals].map((side) => ({
    ...side,
    runner: runnerOn(side.generator),
  }));
  const questions = (await demoQuestions())
    .slice(0, Number(values.questions))
    .map(({ question }) => question);
  const samples = new Map<string, Sample[]>();
  for (let round = 0; round <= Number(values.rounds); round++) {
    for (const atOnce of AT_ONCE)
      for (const { name, runner } of round % 2 ? sides : [...sides].reverse()) {
        const sample = await rollouts(runner, round === 0 ? questions.slice(0, 2) : questions, atOnce);
        if (round > 0)
          samples.set(`${name} ${atOnce}`, [...(samples.get(`${name} ${atOnce}`) ?? []), sample]);
      }
    note(`round ${round} of ${values.rounds}`);
  }
  for (const { generator } of sides) await generator.close();
  await retriever.close();
  report(
    samples,
    sides.map(({ name }) => name),
    questions.length,
    Number(values.rounds),
  );
  return 0;
}

/** `rag` searches in every rollout; the untrained model seldom searches under search-r1. Both are run. */
async function rollouts(
  runner: RolloutRunner,
  questions: readonly string[],
  atOnce: number,
): Promise<Sample> {
  const jobs = questions.flatMap((question) => [
    { question, method: 'rag' as const },
    { question, method: 'search-r1' as const },
  ]);
  let tokens = 0;
  let searches = 0;
  const begin = performance.now();
  await eachOf(jobs, atOnce, async ({ question, method }) => {
    for await (const event of runner.run({
      method,
      messages: [{ role: 'user', content: question }],
      sampling: { ...RAW_POLICY, temperature: 0 },
      maxTokens: 200,
      forceAnswer: true,
    }))
      if (event.type === 'done') {
        tokens += event.usage.completionTokens;
        searches += event.usage.searches;
      }
  });
  return { perMinute: (jobs.length * 60_000) / (performance.now() - begin), tokens, searches };
}

function report(
  samples: ReadonlyMap<string, Sample[]>,
  names: readonly string[],
  questions: number,
  rounds: number,
): void {
  const figures: Figure[] = [];
  for (const atOnce of AT_ONCE) {
    const rate = (name: string) =>
      median(samples.get(`${name} ${atOnce}`)!.map(({ perMinute }) => perMinute));
    for (const name of names)
      figures.push({
        name: `${atOnce} at once: ${name}`,
        value: rate(name),
        unit: 'rollouts/min',
        goal: null,
      });
    const best = Math.max(...names.filter((name) => name !== 'ours').map(rate));
    figures.push({
      name: `${atOnce} at once: ours over the better rival`,
      value: rate('ours') / best,
      unit: 'x',
      goal: { least: GOAL },
    });
  }
  const totals = names.map((name) => {
    const { tokens, searches } = samples.get(`${name} 1`)![0]!;
    return `${name}: ${tokens} tokens, ${searches} searches a round`;
  });
  printReport('rollouts', figures, [
    `medians of ${rounds} rounds of ${questions * 2} rollouts (rag and search-r1), greedy, at most 200 tokens each`,
    ...totals,
  ]);
}
