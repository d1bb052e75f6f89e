import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const code = `
  import { getPriority } from 'node:os';
  import { setCurrentThreadPriority } from ${JSON.stringify(
    pathToFileURL(join(__dirname, '../../../dist/runtime/workers/priority.js')).href,
  )};
  const seen = [getPriority()];
  for (const nice of [3, 15, 4]) seen.push(setCurrentThreadPriority(nice), getPriority());
  console.log(JSON.stringify(seen));`;

if (process.platform === 'linux')
  test('a thread yields more, never less: a process that was started with nice keeps that', () => {
    const args = ['-n', '9', process.execPath, '--input-type=module', '--eval', code];
    const [begun, ...seen] = JSON.parse(execFileSync('nice', args, { encoding: 'utf8' })) as number[];
    // Tests may run under nice themselves.
    expect(begun).toBeGreaterThanOrEqual(9);
    const least = begun as number;
    expect(seen).toEqual([true, Math.max(least, 3), true, Math.max(least, 15), true, Math.max(least, 15)]);
  });
