import { Command, InvalidArgumentError } from 'commander';
import { type Engine, RAW_POLICY } from '../engine/index.js';
import { CancelledError, NotFoundError } from '../errors.js';
import { adapterFor, METHODS, type MethodName, type RolloutEvent } from '../rollout/index.js';
import { openIndex, openPolicyModel, openRunner } from './application.js';
import { contextOf } from './context.js';
import { counted } from './counted.js';
import { oneOf } from './flag-values.js';
import { type Output, styled } from './output.js';

interface AskOptions {
  readonly method: MethodName;
  readonly adapter?: string;
  readonly seed?: number;
  readonly temperature?: number;
  readonly record: boolean;
}

type Done = Extract<RolloutEvent, { type: 'done' }>;
type Results = Extract<RolloutEvent, { type: 'search.results' }>;

/** One rollout without a server; thinking, searches and the answer in colours of their own. */
export function askCommand(): Command {
  return new Command('ask')
    .description('answer one question here, without a server')
    .argument('<question>')
    .option('-m, --method <name>', `one of ${Object.keys(METHODS).join(', ')}`, methodName, 'search-r1')
    .option('-a, --adapter <name>', 'adapter (model.adapters); absent: the live one')
    .option('--seed <number>', 'seed of the sampler', whole)
    .option('-t, --temperature <number>', 'absent: rollout.temperature', Number)
    .option('--record', 'with --json: also the record, with every token and its log-probability', false)
    .action(async (question: string, options: AskOptions, self: Command) => {
      // As a setting, so that the bounds of the setting hold.
      const { config, output, signal } = contextOf(self, { 'rollout.temperature': options.temperature });
      const progress = output.progress();
      const start = { onProgress: progress.on, onNote: output.note, signal };
      const policy = await openPolicyModel(config, start).finally(() => progress.stop());
      try {
        if (options.adapter !== undefined) checkAdapter(options.adapter, policy.engine);
        const retriever = METHODS[options.method].searches ? await openIndex(config, start) : null;
        progress.stop();
        try {
          const rollout = openRunner(config, policy, retriever).run({
            method: options.method,
            messages: [{ role: 'user', content: question }],
            sampling: { ...RAW_POLICY, temperature: config.rollout.temperature },
            forceAnswer: true,
            signal,
            ...(options.seed === undefined ? {} : { seed: options.seed }),
            adapter: options.adapter ?? adapterFor(options.method, config.model.liveMethods),
          });
          await show(rollout, output, options.record);
        } finally {
          await retriever?.close();
        }
      } finally {
        progress.stop();
        await policy.close();
      }
    });
}

const BASE = 'base';

/** @throws {NotFoundError} neither the name nor the version of a loaded adapter */
function checkAdapter(wanted: string, engine: Engine): void {
  const loaded = engine.listAdapters();
  if (wanted === BASE || loaded.some(({ name, version }) => name === wanted || version === wanted)) return;
  const names = [...loaded.map(({ name }) => name), `${BASE} (the plain model)`].join(', ');
  throw new NotFoundError(`there is no adapter "${wanted}"; there are ${names}; model.adapters loads others`);
}

async function show(
  rollout: AsyncIterable<RolloutEvent>,
  output: Output,
  withRecord: boolean,
): Promise<void> {
  const searches: Results[] = [];
  let done: Done | null = null;
  const write = (text: string): void => void (output.json || process.stdout.write(text));
  let part = '';
  for await (const event of rollout) {
    if (event.type !== part && part !== '') write('\n');
    part = event.type;
    if (event.type === 'reasoning.delta') write(styled('gray', event.text));
    else if (event.type === 'search.query') write(styled('cyan', `search: ${event.query}`));
    else if (event.type === 'search.results') {
      searches.push(event);
      write(styled('yellow', resultsText(event)));
    } else if (event.type === 'answer.delta') write(styled(['bold', 'green'], event.text));
    else if (event.finish === 'cancelled') throw new CancelledError();
    else {
      done = event;
      write(summaryText(event));
    }
  }
  if (output.json && done !== null) output.result(dataOf(done, searches, withRecord), '');
}

/** What --json prints. */
function dataOf(
  { answer, finish, citations, usage, record }: Done,
  searches: Results[],
  withRecord: boolean,
) {
  return {
    answer,
    finish,
    searches: searches.map(({ query, passages, error }) => ({
      query,
      passages: passages.map(({ id, title, score }) => ({ id, title, score })),
      error,
    })),
    citations: citations.map(({ passage: { id, title }, start, end }) => ({ id, title, start, end })),
    usage,
    version: record.versions.at(-1)?.adapterVersion ?? null,
    ...(withRecord ? { record } : {}),
  };
}

function resultsText(event: Results): string {
  if (event.error !== null) return `search failed: ${event.error}`;
  return event.passages
    .map(({ title, text, score }) => `  ${title} (${score.toFixed(3)}): ${text}`)
    .join('\n');
}

function summaryText({ usage, citations, finish }: Done): string {
  const sources = [...new Set(citations.map(({ passage }) => passage.title))];
  const { completionTokens, searches } = usage;
  const counts = `${counted(completionTokens, 'token')}, ${counted(searches, 'search', 'searches')}, ${finish}`;
  return `\n${styled('gray', sources.length > 0 ? `sources: ${sources.join('; ')}\n${counts}` : counts)}\n`;
}

const methodName = oneOf(Object.keys(METHODS) as MethodName[]);

function whole(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value)) throw new InvalidArgumentError('expected a whole number');
  return value;
}
