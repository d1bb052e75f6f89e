import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openTinyPlace, tinyModelFolder } from '../../../bench/tiny-world/house.js';
import { writeTinyModelFiles } from '../../../bench/tiny-world/model.js';
import { lessonQuestions } from '../../../bench/tiny-world/questions.js';
import { TINY_RECIPE } from '../../../bench/tiny-world/recipe.js';
import { GOOD_HABITS } from '../../../bench/tiny-world/teacher.js';
import { tinyTrajectories } from '../../../bench/tiny-world/trajectories.js';
import { makeTinyWarmStart } from '../../../bench/tiny-world/warm-start.js';
import { createWorld } from '../../../bench/tiny-world/world.js';
import { createTokenizer } from '../../../src/tokenizer/index.js';
import { openSafetensorsFile } from '../../../src/weights/index.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-tiny-'));
afterAll(() => rmSync(folder, { recursive: true }));
jest.setTimeout(300_000);

test('the model that comes with the project is the recipe’s kind of model, in half precision', async () => {
  await writeTinyModelFiles(folder, createWorld());
  for (const name of ['config.json', 'tokenizer.json', 'tokenizer_config.json'])
    expect(readFileSync(join(tinyModelFolder(), name), 'utf8')).toBe(
      readFileSync(join(folder, name), 'utf8'),
    );
  const source = openSafetensorsFile(join(tinyModelFolder(), 'model.safetensors'));
  const tensors = [...source.tensors.values()];
  source.close();
  expect(new Set(tensors.map(({ type }) => type))).toEqual(new Set(['F16']));
  const parameters = tensors.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
  expect(parameters).toBeGreaterThan(1e6);
  expect(parameters).toBeLessThan(5e6);
});

test('a teacher with good habits answers everything, and only what it writes is learned', async () => {
  const place = await openTinyPlace(join(folder, 'place'));
  const tokenizer = createTokenizer(await place.model.readTokenizer());
  const stage = { name: 'good', worlds: 'own', habits: GOOD_HABITS, trajectories: 60 } as const;
  const config = place.config({ 'retrieval.index': place.indexes.training });
  const examples = await tinyTrajectories({
    world: place.world,
    recipe: TINY_RECIPE,
    stage,
    config,
    model: place.model,
  });
  const questions = new Map(lessonQuestions(place.world).map((item) => [item.question, item]));
  for (const { tokenIds, lossMask, environmentMask } of examples) {
    const asked = /<\|user\|> (.*)<\|end\|>/.exec(tokenizer.decode([...tokenIds]))?.[1] ?? '';
    const question = questions.get(asked);
    const learned = tokenizer.decode([...tokenIds].filter((_, t) => lossMask[t] === 1));
    expect(learned).toMatch(new RegExp(`<answer> ${question?.goldenAnswers[0]}</answer>$`));
    expect(learned.match(/<search>/g)).toHaveLength(question?.form.path.length ?? 0);
    const shown = tokenizer.decode([...tokenIds].filter((_, t) => environmentMask[t] === 1));
    expect(shown).toContain(`${question?.goldenAnswers[0]} .`);
    expect([...tokenIds].some((_, t) => lossMask[t] === 1 && environmentMask[t] === 1)).toBe(false);
  }
  // Short, so that runs are fast.
  expect(Math.max(...examples.map(({ tokenIds }) => tokenIds.length))).toBeLessThanOrEqual(200);
});

test('the recipe makes a model; run again, it goes on where it was', async () => {
  const output = join(folder, 'made');
  const stages = TINY_RECIPE.stages.map((stage) => ({
    ...stage,
    trajectories: 8,
    epochs: 1,
    batchSequences: 8,
  }));
  const recipe = { ...TINY_RECIPE, stages };
  const steps: number[] = [];
  const make = () =>
    makeTinyWarmStart({
      world: createWorld(),
      recipe,
      work: join(folder, 'work'),
      output,
      threads: 1,
      onStep: ({ step }) => steps.push(step),
    });
  await make();
  const first = readFileSync(join(output, 'model.safetensors'));
  await make();
  expect(steps).toEqual([1, 1]);
  expect(readFileSync(join(output, 'model.safetensors')).equals(first)).toBe(true);
  expect(existsSync(join(output, 'tokenizer.json'))).toBe(true);
});
