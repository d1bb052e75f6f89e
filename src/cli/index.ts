// cli/: one short file per command; each exports a function that makes its commander Command.
// Commands join rooms, show progress and set exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
// Never holds logic that a server or a test would need.

export { runCli } from './run.js';
