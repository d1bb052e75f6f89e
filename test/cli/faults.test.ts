// Faults of the machine are told in words, without a stack.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from '../../src/cli/index.js';

async function stderrOf(argv: readonly string[]): Promise<{ code: number; text: string }> {
  const lines: string[] = [];
  const write = jest.spyOn(process.stderr, 'write').mockImplementation((chunk) => {
    lines.push(String(chunk));
    return true;
  });
  try {
    return { code: await runCli(argv), text: lines.join('') };
  } finally {
    write.mockRestore();
  }
}

test('a folder that cannot be', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'searchloop-faults-'));
  try {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    const { code, text } = await stderrOf(['models', 'pull', '--set', `paths.home=${join(file, 'home')}`]);
    expect(code).toBe(1);
    expect(text).toMatch(/error: a part of the path is no folder: mkdir .*\(ENOTDIR\); paths\.home/);
    expect(text).not.toContain('    at ');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
