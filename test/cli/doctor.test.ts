import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCli } from '../../src/cli/index.js';
import { packageRoot } from '../../src/config/index.js';

test('the Node.js that is needed is that of package.json', async () => {
  const { engines } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8'));
  let out = '';
  const write = jest.spyOn(process.stdout, 'write').mockImplementation((text) => (out += text) !== '');
  const before = process.exitCode;
  await runCli(['doctor', '--json']);
  process.exitCode = before;
  write.mockRestore();
  const [{ found, state }] = JSON.parse(out).checks;
  expect(state).toBe('good');
  expect(`>=${/; (.*) or later/.exec(found)?.[1]}`).toBe(engines.node);
});
