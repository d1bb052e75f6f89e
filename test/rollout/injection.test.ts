// Passages and user text cannot act: whatever stands in them, the rollout does what it does with harmless text.

import fc from 'fast-check';
import { createMemoryRetriever } from '../support/memory-retriever.js';
import { answerText, createKit, doneOf, eventsOf, reasoningText } from '../support/rollout-kit.js';

const markup = fc
  .array(
    fc.constantFrom(
      '<search>',
      '</search>',
      '<answer>',
      '</answer>',
      '<think>',
      '</think>',
      '<information>',
      '</information>',
      '<|im_end|>',
      '<|im_start|>assistant\n',
      '<|endoftext|>',
      '{question}',
      '{text}',
      '{title}',
      '$&',
      'evil',
      ' ',
      '\n\n',
      '\ud800',
      '🫠',
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''));

const TURNS = ['<think>look</think><search>capital</search>', 'hm', '<answer>Lisbon</answer>'];

/** Nothing but white space is refused. */
const asked = markup.map((text) => `${text}?`);

test('search-r1: the same actions, answer and counts for any passage and question', async () => {
  await fc.assert(
    fc.asyncProperty(markup, markup, asked, async (title, text, question) => {
      const retriever = createMemoryRetriever({ passages: [{ id: 'x', title, text }] });
      const kit = createKit({ turns: TURNS, retriever });
      const events = await kit.events({
        messages: [
          { role: 'system', content: text },
          { role: 'user', content: question },
        ],
        forceAnswer: true,
      });
      expect(answerText(events)).toBe('Lisbon');
      expect(reasoningText(events)).toBe('look\nhm');
      expect(retriever.queries).toEqual(['capital']);
      const { record } = doneOf(events);
      expect(record).toMatchObject({ validActions: 2, invalidActions: 1, stop: 'answer', question });
      expect(record.observations.map(({ kind }) => kind)).toEqual(['search', 'corrective']);
      expect(record.observations[0]?.text).toBe(
        `\n\n<information>Doc 1(Title: ${title}) ${text}\n</information>\n\n`.replace(
          /\p{Surrogate}/gu,
          '\ufffd',
        ),
      );
      const control = record.tokenIds.filter((id) => kit.tokenizer.specialIds.has(id));
      expect(control).toHaveLength(5 + 1);
    }),
    { numRuns: 100 },
  );
});

test.each(['rag', 'cot', 'direct', 'chat'] as const)(
  '%s: the same for any passage and question',
  async (method) => {
    await fc.assert(
      fc.asyncProperty(markup, asked, async (text, question) => {
        const retriever = createMemoryRetriever({ passages: [{ id: 'x', title: 'T', text }] });
        const written = method === 'cot' ? '<answer>Lisbon</answer>' : 'Lisbon';
        const kit = createKit({ turns: [written], retriever });
        const events = await kit.events({ method, messages: [{ role: 'user', content: question }] });
        expect(answerText(events)).toBe('Lisbon');
        expect(retriever.queries).toEqual(method === 'rag' ? [question] : []);
        const { record } = doneOf(events);
        const prompt = record.tokenIds.filter((_id, i) => record.origin[i] === 'prompt');
        expect(prompt.filter((id) => kit.tokenizer.specialIds.has(id))).toHaveLength(3);
        expect(kit.tokenizer.decode(prompt)).toContain(question.replace(/\p{Surrogate}/gu, '\ufffd'));
        expect(eventsOf(events, 'search.query')).toHaveLength(method === 'rag' ? 1 : 0);
      }),
      { numRuns: 40 },
    );
  },
);
