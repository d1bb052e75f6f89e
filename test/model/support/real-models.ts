// The default models in the cache folder, as `searchloop models pull` leaves them. Missing ones fail the test loudly.

import { homeFolder } from '../../../src/config/index.js';
import { openModel, type StoredModel } from '../../../src/model/index.js';

export const home = homeFolder({ paths: { home: null, indexes: null } });

export async function realModel(id: string): Promise<StoredModel> {
  try {
    return await openModel(home, id);
  } catch (cause) {
    throw new Error(`this test needs real weights; run: searchloop models pull ${id}`, { cause });
  }
}
