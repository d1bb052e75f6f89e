import { openRolloutHouse } from '../../src/cli/train-house.js';
import type { TrainedModel } from '../../src/cli/train-parts.js';
import { configSchema } from '../../src/config/index.js';
import { ConfigError } from '../../src/errors.js';
import { runSettings } from '../../src/training/index.js';
import { createMemoryRetriever } from '../support/memory-retriever.js';

test('a prompt that cannot be read ends it before the engine is started', async () => {
  const config = configSchema.parse({ rollout: { prompt: 'none-of-that-name' } });
  const readTokenizer = jest.fn(() => Promise.reject(new Error('the engine is being started')));
  const model = { home: '', model: { readTokenizer } } as unknown as TrainedModel;
  const retriever = createMemoryRetriever({ passages: [] });
  const opening = openRolloutHouse(config, runSettings(config.training, 'grpo'), model, retriever);
  await expect(opening).rejects.toThrow(ConfigError);
  await expect(opening).rejects.toThrow('cannot read prompt file');
  expect(readTokenizer).not.toHaveBeenCalled();
});
