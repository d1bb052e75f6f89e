import { homeFolder, loadConfig } from '../../src/config/index.js';
import { openModel, type StoredModel } from '../../src/model/index.js';

/** A model with real weights, from the user's cache. Fails with the command that brings it there. */
export async function realModel(id: string): Promise<StoredModel> {
  try {
    return await openModel(homeFolder(loadConfig()), id);
  } catch (cause) {
    throw new Error(
      `this test needs the weights of ${id}; bring them with: node dist/main.js models pull ${id}`,
      { cause },
    );
  }
}
