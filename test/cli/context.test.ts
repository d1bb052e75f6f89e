import { Command } from 'commander';
import { addGlobalFlags, contextOf } from '../../src/cli/context.js';
import { CancelledError } from '../../src/errors.js';

const context = (line: string[], flags: Record<string, unknown>) =>
  contextOf(addGlobalFlags(new Command()).parse(line, { from: 'user' }), flags);
const config = (line: string[], flags: Record<string, unknown>) => context(line, flags).config;

test('a flag that is not on the line leaves --set alone; one that is wins', () => {
  const line = ['--set', 'retrieval.index=mine', '--set', 'retrieval.ef=64'];
  expect(config(line, { 'retrieval.index': undefined }).retrieval).toMatchObject({ index: 'mine', ef: 64 });
  expect(config(line, { 'retrieval.index': 'other' }).retrieval).toMatchObject({ index: 'other', ef: 64 });
});

test('Ctrl-C is heard as a CancelledError, which ends a command with 130 and without a stack', () => {
  const { signal } = context([], {});
  process.emit('SIGINT');
  expect(() => signal.throwIfAborted()).toThrow(CancelledError);
});
