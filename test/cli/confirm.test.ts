import { PassThrough } from 'node:stream';
import { confirm } from '../../src/cli/confirm.js';
import { CancelledError } from '../../src/errors.js';

const ask = (answer: string | null, signal = new AbortController().signal) => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const asked = confirm('Really?', signal, { input, output });
  if (answer !== null) input.end(answer);
  return { asked, shown: () => String(output.read()) };
};

test.each([
  ['y\n', true],
  [' YES \n', true],
  ['n\n', false],
  ['\n', false],
  ['yesterday\n', false],
  ['', false],
])('%j', async (answer, expected) => {
  const { asked, shown } = ask(answer);
  expect(await asked).toBe(expected);
  expect(shown()).toBe('Really? [y/N] ');
});

test('a signal ends the question', async () => {
  const controller = new AbortController();
  const { asked } = ask(null, controller.signal);
  controller.abort();
  await expect(asked).rejects.toThrow(CancelledError);
});
