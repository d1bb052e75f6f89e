// `searchloop loop receipt`: where a published version comes from, why it was let out, and what became of it.

import { Command } from 'commander';
import { listVersions, readReceipt, type VersionList, type VersionReceipt } from '../loop/index.js';
import { contextOf } from './context.js';
import { counted } from './counted.js';
import { callLoop, onServer, type ServerFlags } from './loop-server.js';
import { withStore } from './store.js';

export function receiptCommand(): Command {
  return onServer(new Command('receipt'))
    .description(
      'where a published version comes from and why it was let out; without one, all that were published',
    )
    .argument('[version]', 'its whole digest')
    .option('--stored', 'read the store instead of asking a server')
    .action(async (version: string | undefined, flags: ServerFlags & { stored?: boolean }, self: Command) => {
      const { config, output } = contextOf(self);
      if (version === undefined) {
        const list = flags.stored
          ? await withStore(config, listVersions)
          : await callLoop<VersionList>(config, flags, 'GET', '/versions');
        output.result(list, listText(list));
        return;
      }
      const receipt = flags.stored
        ? await withStore(config, (store) => readReceipt(store, version))
        : await callLoop<VersionReceipt>(config, flags, 'GET', `/versions/${encodeURIComponent(version)}`);
      output.result(receipt, receiptText(receipt));
    });
}

type Head = Pick<
  VersionReceipt,
  'published_at' | 'published_by' | 'ordered_by' | 'live' | 'on_trial' | 'rolled_back'
>;

function listText({ data, start, live }: VersionList): string {
  if (data.length === 0)
    return `none was published yet; live is ${live ?? 'what the server was started with'}`;
  const lines = data.map(
    ({ version, parent, steps, ...head }) =>
      `${version}  ${publishedText(head)}; from ${parent.slice(0, 12)} by ${counted(steps, 'step')}${standing(head)}`,
  );
  if (live === start) lines.push(`live is ${start}, what the loop began with`);
  return lines.join('\n');
}

function receiptText(receipt: VersionReceipt): string {
  const { steps, trajectory_ids: records, rolled_back: back } = receipt;
  return [
    `version    ${receipt.version}${standing(receipt)}`,
    `parent     ${receipt.parent}`,
    `published  ${publishedText(receipt)}`,
    ...(back === null ? [] : [`taken back ${time(back.at)} by ${back.by ?? 'the loop'}: ${back.reason}`]),
    `steps      ${steps.length}${steps.length < 2 ? '' : `: ${steps.map((step) => step.slice(0, 12)).join(', ')}`}`,
    `learned    from ${counted(records.length, 'record')} (--json names them)`,
    `seeds      ${receipt.seeds.join(', ')}`,
    `settings   ${receipt.config_digest}`,
    `index      ${receipt.index_snapshot_id ?? 'none'}`,
    'gate',
    ...receipt.gate.map(({ passed, words }) => `  ${passed ? 'yes' : 'no '}  ${words}`),
    'last step',
    ...Object.entries(receipt.metrics).map(([name, value]) => `  ${name} ${figure(value)}`),
  ].join('\n');
}

function publishedText({ published_at: at, published_by: by, ordered_by: orderedBy }: Head): string {
  return `${time(at)} by ${by}${orderedBy === null ? '' : `, ordered by ${orderedBy}`}`;
}

function standing({ live, on_trial: isTried, rolled_back: back }: Head): string {
  if (live) return '  live';
  if (isTried) return '  on trial';
  return back === null ? '' : '  taken back';
}

const time = (at: number): string => new Date(at).toISOString();

// JSON has no NaN: what could not be measured is null.
const figure = (value: number | null): string =>
  value === null ? '-' : String(Number(value.toPrecision(6)));
