import { homeFolder } from '../../config/index.js';
import { ensureModel, preparePrecision } from '../../model/index.js';
import type { Auditor } from '../../trajectory/index.js';
import type { CliContext } from '../context.js';

/** What records of the configured policy are audited with. */
export async function auditorOf({ config, output, signal }: CliContext): Promise<Auditor> {
  const home = homeFolder(config);
  const progress = output.progress();
  const options = { onProgress: progress.on, onNote: output.note, signal };
  try {
    const model = await ensureModel(config.model.policy, home, options);
    const graphs = await preparePrecision(home, model, config.engine.precision, options);
    return { modelDigest: graphs.digest, tokenizer: await model.readTokenizer() };
  } finally {
    progress.stop();
  }
}
