import { InvalidInputError } from '../../errors.js';
import type { SamplingParameters, TurnOptions } from '../generator.js';

/** The raw policy: temperature 1, nothing cut, no penalty, no bias. */
export const RAW_POLICY: SamplingParameters = Object.freeze({
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  frequencyPenalty: 0,
  presencePenalty: 0,
  repetitionPenalty: 1,
  logitBias: Object.freeze({}),
});

/** The likeliest next token, whatever it is. */
export const ONE_GREEDY_TOKEN: TurnOptions = Object.freeze({
  sampling: Object.freeze({ ...RAW_POLICY, temperature: 0 }),
  maxTokens: 1,
  stopStrings: [],
  stopTokenIds: [],
  ignoreEos: true,
});

/** Below these, logits divided by them can leave the range of numbers. */
export const LEAST_TEMPERATURE = 1e-6;
const LEAST_REPETITION_PENALTY = 0.01;

const MOST_ALTERNATIVES = 20;

function check(holds: boolean, field: string, expected: string, got: unknown): void {
  if (!holds) throw new InvalidInputError(`${field}: expected ${expected}, got ${String(got)}`, field);
}

function checkSampling(sampling: SamplingParameters, vocabSize: number): void {
  const { temperature, topP, topK, minP, repetitionPenalty } = sampling;
  check(
    temperature === 0 || (Number.isFinite(temperature) && temperature >= LEAST_TEMPERATURE),
    'temperature',
    `0 or a number of at least ${LEAST_TEMPERATURE}`,
    temperature,
  );
  check(topP > 0 && topP <= 1, 'topP', 'a number above 0 and at most 1', topP);
  check(Number.isInteger(topK) && topK >= 0, 'topK', 'an integer of at least 0', topK);
  check(minP >= 0 && minP <= 1, 'minP', 'a number from 0 to 1', minP);
  for (const field of ['frequencyPenalty', 'presencePenalty'] as const)
    check(Number.isFinite(sampling[field]), field, 'a finite number', sampling[field]);
  check(
    Number.isFinite(repetitionPenalty) && repetitionPenalty >= LEAST_REPETITION_PENALTY,
    'repetitionPenalty',
    `a number of at least ${LEAST_REPETITION_PENALTY}`,
    repetitionPenalty,
  );
  for (const [id, bias] of Object.entries(sampling.logitBias)) {
    const inVocabulary = Number.isInteger(Number(id)) && Number(id) >= 0 && Number(id) < vocabSize;
    check(inVocabulary, `logitBias[${id}]`, `a token id below ${vocabSize}`, id);
    check(Number.isFinite(bias), `logitBias[${id}]`, 'a finite number', bias);
  }
}

/** @throws {InvalidInputError} with the offending field as `param` */
export function checkTurnOptions(options: TurnOptions, vocabSize: number): void {
  checkSampling(options.sampling, vocabSize);
  check(
    Number.isInteger(options.maxTokens) && options.maxTokens >= 1,
    'maxTokens',
    'an integer of at least 1',
    options.maxTokens,
  );
  const alternatives = options.topLogprobs ?? 0;
  check(
    Number.isInteger(alternatives) && alternatives >= 0 && alternatives <= MOST_ALTERNATIVES,
    'topLogprobs',
    `an integer from 0 to ${MOST_ALTERNATIVES}`,
    alternatives,
  );
  for (const text of options.stopStrings) check(text.length > 0, 'stopStrings', 'non-empty strings', '""');
  for (const id of options.stopTokenIds)
    check(Number.isInteger(id) && id >= 0 && id < vocabSize, 'stopTokenIds', `ids below ${vocabSize}`, id);
}
