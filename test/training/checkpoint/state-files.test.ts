import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileFormatError } from '../../../src/errors.js';
import { readState } from '../../../src/training/checkpoint/state-files.js';

test('a state that is not there, cut off or of another form is told with file and field, in words', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'state-files-'));
  try {
    const path = join(folder, 'state.json');
    const said = () => readState(folder).catch((error: Error) => error);
    expect(await said()).toEqual(new FileFormatError(`${path} does not exist`));
    writeFileSync(path, '{"state": "a"');
    expect(await said()).toEqual(
      expect.objectContaining({ message: expect.stringContaining(`${path}: expected JSON`) }),
    );
    writeFileSync(path, JSON.stringify({ state: 'a', updates: { policy: -1 }, carried: {} }));
    const wrong = (await said()) as Error;
    expect(wrong).toBeInstanceOf(FileFormatError);
    expect(wrong.message).toMatch(/state\.json: [\s\S]*updates\.policy/);
    expect(wrong.message).not.toContain('"code"');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
