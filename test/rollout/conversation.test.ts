import { promptMessages, questionOf } from '../../src/rollout/conversation.js';

const assistant = (content: string): string =>
  promptMessages([
    { role: 'user', content: 'a' },
    { role: 'assistant', content },
    { role: 'user', content: 'b' },
  ])[1]?.content as string;

test('earlier answers lose their reasoning and nothing else', () => {
  expect(assistant('  Madrid. ')).toBe('  Madrid. ');
  expect(assistant('<think>hm</think>\n\nMadrid')).toBe('Madrid');
  expect(assistant('<think>never closed')).toBe('');
  expect(assistant('<think>x</think><search>q</search><answer> Madrid </answer>')).toBe('Madrid');
  expect(assistant('Use the <search> element.')).toBe('Use the <search> element.');
});

test('user and system text is never touched, the last user turn holds the question', () => {
  const messages = [
    { role: 'system', content: '<think>s</think>' },
    { role: 'user', content: '<think>u</think>' },
    { role: 'assistant', content: 'A' },
    { role: 'user', content: 'Q' },
    { role: 'assistant', content: 'begun' },
  ] as const;
  expect(questionOf(messages)).toBe('Q');
  expect(promptMessages(messages, (question) => `ask: ${question}`)).toEqual([
    messages[0],
    messages[1],
    messages[2],
    { role: 'user', content: 'ask: Q' },
    messages[4],
  ]);
});

test('a conversation without a user is refused', () => {
  expect(() => questionOf([{ role: 'system', content: 'x' }])).toThrow(/role "user"/);
});

test('an empty question is refused by what asks it, and not by plain chat', () => {
  const messages = [{ role: 'user', content: ' \n' }] as const;
  expect(() => promptMessages(messages, (question) => question)).toThrow(/expected a question/);
  expect(promptMessages(messages)).toEqual(messages);
});
