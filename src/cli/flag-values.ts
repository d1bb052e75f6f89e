import { InvalidArgumentError } from 'commander';

/** Reads a whole number of a flag that must not be smaller than `least` nor greater than `most`. */
export const wholeNumber =
  (least: number, most = Number.MAX_SAFE_INTEGER) =>
  (text: string): number => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (!Number.isSafeInteger(value) || value < least)
      throw new InvalidArgumentError(`expected a whole number of at least ${least}`);
    if (value > most) throw new InvalidArgumentError(`expected a whole number of at most ${most}`);
    return value;
  };

export const oneOf =
  <T extends string>(values: readonly T[]) =>
  (text: string): T => {
    if (!(values as readonly string[]).includes(text))
      throw new InvalidArgumentError(`expected one of ${values.join(', ')}`);
    return text as T;
  };
