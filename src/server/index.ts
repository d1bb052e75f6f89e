// server/: the wire. HTTP routes, event streams and WebSockets over rollouts and the retriever.
// Request bodies in; OpenAI-shaped answers, events and errors out.
// Never runs a model, never blocks its thread, never logs what was asked.

export type { Part, Policy } from './context.js';
export { createServer } from './server.js';
