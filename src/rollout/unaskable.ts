import { ContextLengthError, InvalidInputError } from '../errors.js';

/** Whether it is the conversation that is at fault, whoever answers it. */
export const isUnaskable = (error: unknown): error is Error =>
  error instanceof ContextLengthError || (error instanceof InvalidInputError && error.param === 'messages');
