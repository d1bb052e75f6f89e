import { resolveModel, tryResolve } from '../../../src/server/openai/model-name.js';
import { adapter } from '../../support/test-server.js';

const tuned = adapter('tuned', 'aaaabbbbccccdddd');
const other = adapter('with:colon', 'aaaabbbbeeeeffff');
const methodLike = adapter('notes:rag', 'ccccddddeeeeffff');
const engine = { listAdapters: () => [tuned, other, methodLike], liveAdapter: tuned };
const liveMethods = ['search-r1', 'rag'] as const;

test.each([
  ['searchloop', 'search-r1', undefined, tuned.version],
  ['searchloop:search-r1', 'search-r1', undefined, tuned.version],
  ['searchloop:rag', 'rag', undefined, tuned.version],
  ['searchloop:cot', 'cot', null, 'base'],
  ['searchloop:direct', 'direct', null, 'base'],
  ['searchloop:chat', 'chat', null, 'base'],
  ['searchloop@base', 'search-r1', null, 'base'],
  ['searchloop@base:rag', 'rag', null, 'base'],
  ['searchloop@tuned', 'search-r1', 'tuned', tuned.version],
  ['searchloop@tuned:chat', 'chat', 'tuned', tuned.version],
  ['searchloop@with:colon:cot', 'cot', 'with:colon', other.version],
  ['searchloop@notes:rag', 'search-r1', 'notes:rag', methodLike.version],
  ['searchloop@notes:rag:rag', 'rag', 'notes:rag', methodLike.version],
  [`searchloop@${tuned.version}`, 'search-r1', tuned.version, tuned.version],
  ['searchloop@aaaabbbbc:rag', 'rag', tuned.version, tuned.version],
])('%s', (name, method, asked, adapterVersion) => {
  expect(tryResolve(name, engine, liveMethods)).toEqual({ method, adapter: asked, adapterVersion });
});

test.each([
  '',
  'gpt-4o',
  'searchloo',
  'searchloopx',
  'searchloop:',
  'searchloop:RAG',
  'searchloop@',
  'searchloop@nobody',
  'searchloop@aaaabbbb',
  'searchloop@aaaa',
  'searchloop:rag:cot',
  'searchloop@tuned:',
  'searchloop :rag',
])('%j does not exist', (name) => {
  expect(() => resolveModel(name, engine, liveMethods)).toThrow(
    expect.objectContaining({ code: 'model_not_found', param: 'model' }),
  );
});

test('without a live adapter the base model answers', () => {
  const bare = { listAdapters: () => [], liveAdapter: null };
  expect(resolveModel('searchloop', bare, liveMethods)).toMatchObject({
    adapter: undefined,
    adapterVersion: 'base',
  });
});
