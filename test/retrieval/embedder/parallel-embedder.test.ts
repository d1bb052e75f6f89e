import type { EncoderSource } from '../../../src/retrieval/embedder/encoder-source.js';
import { openParallelEmbedder } from '../../../src/retrieval/embedder/parallel-embedder.js';
import { startWorker } from '../../../src/runtime/index.js';

jest.mock('../../../src/runtime/index.js', () => ({
  ...jest.requireActual('../../../src/runtime/index.js'),
  startWorker: jest.fn(),
}));

test('when one thread cannot start, those that did are closed', async () => {
  const closed: number[] = [];
  let started = 0;
  jest.mocked(startWorker).mockImplementation(async () => {
    const number = started++;
    if (number === 1) throw new Error('no memory for a thread');
    return { close: async () => void closed.push(number) } as never;
  });
  const opening = openParallelEmbedder({} as EncoderSource, { workers: 4 });
  await expect(opening).rejects.toThrow('no memory for a thread');
  expect(closed.sort()).toEqual([0, 2, 3]);
});
