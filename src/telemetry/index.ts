// telemetry/: what operators see of a running process: structured logs.
// Takes names, counts, times and codes.
// Never a question, a passage, an answer or a key.

export { createLogger, type Logger } from './logger.js';
