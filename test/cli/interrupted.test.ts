import { Command } from 'commander';
import { interruptedText } from '../../src/cli/interrupted.js';

function parsed(name: string, ...args: string[]): Command {
  return new Command(name).option('-o, --output <folder>').exitOverride().parse(args, { from: 'user' });
}

test('what goes on with the same line, what with --resume, and what does not', () => {
  const resumable = (...args: string[]): Command =>
    new Command('sft').option('-r, --resume', '', false).parse(args, { from: 'user' });
  expect(interruptedText(resumable())).toBe('interrupted; the same command with --resume goes on');
  expect(interruptedText(resumable('-r'))).toBe('interrupted; run the same command again to go on');
  expect(interruptedText(parsed('build'))).toBe('interrupted; run the same command again to go on');
  expect(interruptedText(parsed('evaluate', '-o', 'run'))).toContain('run the same command again');
  expect(interruptedText(parsed('evaluate'))).toBe('interrupted; nothing was kept');
  expect(interruptedText(parsed('ask'))).toBe('interrupted; nothing was kept');
});
