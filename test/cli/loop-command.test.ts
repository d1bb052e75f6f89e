// `loop status` against servers without a loop, and one whose gate has nothing to judge by.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importModel } from '../../src/model/index.js';
import { startTestServer } from '../support/test-server.js';
import { type Outcome, runBuilt } from './support/built-cli.js';

const status = (url: string): Promise<Outcome> => runBuilt(['loop', 'status', '--url', url], {});

test('a server without a loop: off or still starting, and no fault of the line', async () => {
  const ready = await startTestServer();
  const starting = await startTestServer({
    parts: { policy: () => ({ state: 'loading', reason: 'starting' }) },
  });
  try {
    const [off, early] = await Promise.all([status(ready.url), status(starting.url)]);
    expect(off).toMatchObject({ code: 1, stderr: expect.stringContaining('loop.enabled is false there') });
    expect(early).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('still starting: model is loading: starting'),
    });
  } finally {
    await Promise.all([ready.close(), starting.close()]);
  }
}, 60_000);

test('loop run says what it needs', async () => {
  expect(await runBuilt(['loop', 'run'], {})).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('expected --once'),
  });
}, 60_000);

test('a loop without questions to judge by: the log warns, and the status says it', async () => {
  const home = mkdtempSync(join(tmpdir(), 'searchloop-loop-command-'));
  try {
    await importModel(join(__dirname, '..', 'fixtures', 'models', 'tiny-llama'), home);
    let asked: Promise<Outcome> | undefined;
    const served = await runBuilt(
      ['serve', '--port', '0', '--json'],
      {
        'paths.home': home,
        'paths.data': join(home, 'data'),
        'model.policy': 'tiny-llama',
        'engine.precision': 'fp32',
        'engine.threads': '1',
        // Nothing is searched here.
        'retrieval.kind': 'remote',
        'retrieval.remoteUrl': 'http://127.0.0.1:9',
        'loop.enabled': 'true',
      },
      (child, { stdout }) => {
        const line = /^\{"url".*$/m.exec(stdout)?.[0];
        if (line === undefined) return;
        asked ??= status(JSON.parse(line).url).finally(() => child.kill('SIGINT'));
      },
    );
    expect(`${served.stdout}${served.stderr}`).toMatch(
      /"level":(40|"warn").*loop\.gateData is not set, and a verdict takes 300/,
    );
    expect(await asked).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /step +0, 1 step to the gate, mode .*\n(?:.*\n)*labels .* 0 to judge by, .*\njudging +not possible yet: a verdict takes 300 questions/,
      ),
    });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}, 120_000);
