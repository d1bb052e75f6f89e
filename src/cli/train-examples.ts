// Supervised training on the command line: trajectories of a file, without those of the validation part.

import { InvalidInputError } from '../errors.js';
import { isValidation } from '../evaluation/index.js';
import { trainSft } from '../loop/index.js';
import { createTokenizer } from '../tokenizer/index.js';
import {
  type AlgorithmName,
  type Example,
  type ExampleFile,
  readExamples,
  runSettings,
} from '../training/index.js';
import type { CliContext } from './context.js';
import { counted } from './counted.js';
import { openTrainedModel, readStart, type TrainFlags, withTrainer } from './train-parts.js';
import { openTrainView, outcomeText } from './train-view.js';

export async function trainOnExamples(
  context: CliContext,
  algorithm: AlgorithmName,
  flags: TrainFlags & { readonly data: string },
): Promise<void> {
  const { config, output } = context;
  const settings = runSettings(config.training, algorithm);
  const model = await openTrainedModel(context);
  const limits = {
    vocabSize: model.decoder.vocabSize,
    maxTokens: settings.maxSequenceTokens,
    tokenizer: createTokenizer(await model.model.readTokenizer()),
  };
  const file = await readExamples(flags.data, limits);
  const examples = trainingPart(file, flags.data, output.note);
  const heldOut = file.examples.length - examples.length;
  const inputs = { data: file.digest, ...(heldOut === 0 ? {} : { heldOut }) };
  const start = readStart(config, settings, flags.adapter, model.decoder);
  await withTrainer(context, start, flags, model, inputs, async (run, trainer, signal) => {
    const view = await openTrainView(output, run);
    try {
      const outcome = await trainSft(run, trainer, settings, examples, { signal, onStep: view.onStep });
      output.result(outcome, outcomeText(outcome, run.folder));
    } finally {
      await view.close();
    }
  });
}

/**
 * Trajectories but those of the validation part. Of a line without `questionId` nobody can tell: it is taken.
 * @throws {InvalidInputError} nothing is left
 */
function trainingPart(
  { examples, questionIds }: ExampleFile,
  file: string,
  onNote: (line: string) => void,
): readonly Example[] {
  const taken = examples.filter((_, i) => {
    const id = questionIds[i] ?? null;
    return id === null || !isValidation(id);
  });
  const text = `${examples.length - taken.length} of ${counted(examples.length, 'trajectory', 'trajectories')} in ${file} are of questions of the validation part, which is never trained on`;
  if (taken.length === 0) throw new InvalidInputError(text, 'data');
  if (taken.length < examples.length) onNote(`left out: ${text}`);
  return taken;
}
