import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isValidation } from '../../src/evaluation/index.js';
import { importModel } from '../../src/model/index.js';
import { type PassageServer, runBuilt, startPassageServer } from './support/built-cli.js';

let home: string;
let passages: PassageServer;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'searchloop-warm-start-'));
  await importModel(join(__dirname, '..', 'fixtures', 'models', 'tiny-llama'), home);
  passages = await startPassageServer({
    id: 'p1',
    title: 'Lisbon',
    text: 'Lisbon is the capital of Portugal.',
  });
});
afterAll(async () => {
  await passages?.close();
  rmSync(home, { recursive: true, force: true });
});

test('few questions: the total is theirs, and those for validation are counted', async () => {
  const ids = Array.from({ length: 100 }, (_, i) => `n${i}`);
  const chosen = [
    ...ids.filter(isValidation).slice(0, 1),
    ...ids.filter((id) => !isValidation(id)).slice(0, 3),
  ];
  const data = join(home, 'questions.jsonl');
  // The last one is told something that the page does not say.
  const gold = (i: number): string => (i === 3 ? 'Porto' : 'Lisbon');
  const lines = chosen.map((id, i) => ({
    id,
    question: 'What is the capital of Portugal?',
    golden_answers: [gold(i)],
  }));
  writeFileSync(data, lines.map((line) => JSON.stringify(line)).join('\n'));
  const settings = {
    'paths.home': home,
    'model.policy': 'tiny-llama',
    'engine.precision': 'fp32',
    'retrieval.kind': 'remote',
    'retrieval.remoteUrl': passages.url,
  };
  const output = join(home, 'warm.jsonl');
  const line = ['train', 'warm-start', '--data', data, '-o', output, '--observation-tokens', '96'];
  const made = await runBuilt(line, settings);
  expect(made).toMatchObject({ code: 0 });
  expect(made.stderr).toContain(
    `3 of 4 questions in ${data}: the training part; the rest is for validation\n`,
  );
  expect(made.stderr).toContain('warm start: 1 of 3 trajectories (33 %)\n');
  expect(made.stdout).toMatch(
    /^2 trajectories in .*warm\.jsonl: \d+ tokens, \d+ of them to learn from\n {2}questions: 2 single\nquestions that gave none:\n {2}questions: 1 .*\nleft out: 1 question of the validation part\n$/,
  );
  const again = JSON.parse((await runBuilt([...line, '--json'], settings)).stdout);
  expect(again).toMatchObject({ trajectories: 2, heldOut: 1 });
}, 60_000);
