import { type DecoderWeights, decoderWeights, describeDecoder } from '../../src/model/index.js';
import { openWeights } from '../../src/weights/index.js';
import { fixture, readJson } from './fixtures.js';

/** Weights of a stored model folder; `spelling` picks the settings file. */
export function modelWeights(name: string, spelling = 'config.json'): DecoderWeights {
  const source = openWeights(fixture('models', name));
  const config = describeDecoder({ configJson: readJson('models', name, spelling), tensors: source.tensors });
  return decoderWeights(config, source);
}
