import { Command, InvalidArgumentError } from 'commander';
import { RAW_POLICY } from '../engine/index.js';
import { CancelledError } from '../errors.js';
import { adapterFor, METHODS, type MethodName, type RolloutEvent } from '../rollout/index.js';
import { openIndex, openPolicyModel, openRunner } from './application.js';
import { contextOf } from './context.js';
import { type Output, styled } from './output.js';

interface AskOptions {
  readonly method: MethodName;
  readonly adapter?: string;
  readonly seed?: number;
  readonly temperature?: number;
}

/** One rollout without a server; thinking, searches and the answer in colours of their own. */
export function askCommand(): Command {
  return new Command('ask')
    .description('answer one question here, without a server')
    .argument('<question>')
    .option('-m, --method <name>', `one of ${Object.keys(METHODS).join(', ')}`, methodName, 'search-r1')
    .option('-a, --adapter <name>', 'adapter (model.adapters); absent: the live one')
    .option('--seed <number>', 'seed of the sampler', whole)
    .option('-t, --temperature <number>', 'absent: rollout.temperature', Number)
    .action(async (question: string, options: AskOptions, self: Command) => {
      const { config, output, signal } = contextOf(self);
      const progress = output.progress();
      const start = { onProgress: progress.on, onNote: output.note, signal };
      const policy = await openPolicyModel(config, start).finally(() => progress.stop());
      try {
        const retriever = METHODS[options.method].searches ? await openIndex(config, start) : null;
        progress.stop();
        try {
          const rollout = openRunner(config, policy, retriever).run({
            method: options.method,
            messages: [{ role: 'user', content: question }],
            sampling: { ...RAW_POLICY, temperature: options.temperature ?? config.rollout.temperature },
            forceAnswer: true,
            signal,
            ...(options.seed === undefined ? {} : { seed: options.seed }),
            adapter: options.adapter ?? adapterFor(options.method, config.model.liveMethods),
          });
          await show(rollout, output);
        } finally {
          await retriever?.close();
        }
      } finally {
        progress.stop();
        await policy.close();
      }
    });
}

async function show(rollout: AsyncIterable<RolloutEvent>, output: Output): Promise<void> {
  const events: RolloutEvent[] = [];
  const write = (text: string): void => void (output.json || process.stdout.write(text));
  let part = '';
  for await (const event of rollout) {
    events.push(event);
    if (event.type !== part && part !== '') write('\n');
    part = event.type;
    if (event.type === 'reasoning.delta') write(styled('gray', event.text));
    else if (event.type === 'search.query') write(styled('cyan', `search: ${event.query}`));
    else if (event.type === 'search.results') write(styled('yellow', resultsText(event)));
    else if (event.type === 'answer.delta') write(styled(['bold', 'green'], event.text));
    else if (event.finish === 'cancelled') throw new CancelledError();
    else write(summaryText(event));
  }
  const done = events.at(-1);
  if (output.json && done?.type === 'done') output.result({ events: events.slice(0, -1), ...done }, '');
}

function resultsText(event: Extract<RolloutEvent, { type: 'search.results' }>): string {
  if (event.error !== null) return `search failed: ${event.error}`;
  return event.passages
    .map(({ title, text, score }) => `  ${title} (${score.toFixed(3)}): ${text}`)
    .join('\n');
}

function summaryText(event: Extract<RolloutEvent, { type: 'done' }>): string {
  const { usage, citations, finish } = event;
  const sources = [...new Set(citations.map(({ passage }) => passage.title))];
  const counts = `${usage.completionTokens} tokens, ${usage.searches} searches, ${finish}`;
  return `\n${styled('gray', sources.length > 0 ? `sources: ${sources.join('; ')}\n${counts}` : counts)}\n`;
}

function methodName(text: string): MethodName {
  if (!(text in METHODS))
    throw new InvalidArgumentError(`expected one of ${Object.keys(METHODS).join(', ')}`);
  return text as MethodName;
}

function whole(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value)) throw new InvalidArgumentError('expected a whole number');
  return value;
}
