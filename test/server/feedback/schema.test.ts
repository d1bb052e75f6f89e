import { parseFeedbackBody } from '../../../src/server/feedback/schema.js';

const nothing = { reward: null, goldAnswers: null, rating: null, preferredOver: null, comment: null };

test.each([
  [{ reward: -1 }, { reward: -1 }],
  [{ golden_answers: ['Paris', 'x\ud800'] }, { goldAnswers: ['Paris', 'x\ufffd'] }],
  [{ rating: 'up' }, { rating: 1 }],
  [{ rating: 'down' }, { rating: 0 }],
  [{ rating: 1 }, { rating: 0 }],
  [{ rating: 4 }, { rating: 0.75 }],
  [{ preferred_over: 'b' }, { preferredOver: 'b' }],
  [{ comment: '', reward: null }, { comment: '' }],
  [
    { comment: '\0', golden_answers: ['\0'] },
    { comment: '\0', goldAnswers: ['\0'] },
  ],
])('%j', (fields, expected) => {
  expect(parseFeedbackBody({ id: 'a', ...fields })).toEqual({ id: 'a', ...nothing, ...expected });
});

test.each([
  [{}, null],
  [{ reward: 1.5 }, 'reward'],
  [{ reward: '1' }, 'reward'],
  [{ rating: 0 }, 'rating'],
  [{ rating: 2.5 }, 'rating'],
  [{ golden_answers: [] }, 'golden_answers'],
  [{ golden_answers: [''] }, 'golden_answers[0]'],
  [{ golden_answers: Array.from({ length: 513 }, () => 'x') }, 'golden_answers'],
  [{ golden_answers: Array.from({ length: 65 }, () => 'x'.repeat(4096)) }, 'golden_answers'],
  [{ golden_answer: ['Paris'] }, 'golden_answer'],
  [{ reward: 1, id: 7 }, 'id'],
  [{ reward: 1, id: 'a\0' }, 'id'],
  [{ preferred_over: '\0' }, 'preferred_over'],
  [{ comment: 'x'.repeat(20_000) }, 'comment'],
])('refused: %j', (fields, param) => {
  expect(() => parseFeedbackBody({ id: 'a', ...fields })).toThrow(expect.objectContaining({ param }));
});

test.each([null, [], 'text', 7])('a body that is %j is refused', (body) => {
  expect(() => parseFeedbackBody(body)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
});
