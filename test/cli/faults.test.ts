// Faults of the machine are told in words, without a stack.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from '../../src/cli/index.js';
import { listIndexes } from '../../src/retrieval/index.js';

jest.mock('../../src/retrieval/index.js', () => ({
  ...jest.requireActual('../../src/retrieval/index.js'),
  listIndexes: jest.fn(),
}));

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

test.each([
  ['SQLITE_FULL', 'the disk is full'],
  ['SQLITE_IOERR_WRITE', 'the disk failed'],
  ['SQLITE_READONLY_DBMOVED', 'this user may not write there'],
])('a database that meets %s', async (code, reason) => {
  const fault = Object.assign(new Error('database or disk'), { code });
  jest.mocked(listIndexes).mockRejectedValueOnce(fault);
  const outcome = await stderrOf(['index', 'list']);
  expect(outcome.code).toBe(1);
  expect(outcome.text).toContain(`error: ${reason}`);
  expect(outcome.text).toContain(`database or disk (${code}); paths.home, paths.indexes and paths.data`);
  expect(outcome.text).not.toContain('    at ');
});
