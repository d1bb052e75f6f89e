// `searchloop loop`: a hand on the loop of a running server, and single steps without one.

import { Command } from 'commander';
import { InvalidInputError, NotFoundError } from '../errors.js';
import { createPriority, type LoopStatus, type Regraded, readLoopState, regrade } from '../loop/index.js';
import { openScorers, rewardSettings } from '../reward/index.js';
import { createTokenizer } from '../tokenizer/index.js';
import { openIndex, openPolicyModel } from './application.js';
import { type CliContext, contextOf } from './context.js';
import { counted } from './counted.js';
import { openConfiguredLoop } from './loop-house.js';
import { receiptCommand } from './loop-receipt.js';
import { resetCommand } from './loop-reset-command.js';
import { callLoop, onServer, type ServerFlags } from './loop-server.js';
import { withStore } from './store.js';
import { auditorOf } from './trajectories/auditor.js';

const ORDERS = {
  step: 'one step at once, and the gate where it is due',
  pause: 'stop learning; what is live stays live',
  resume: 'go on',
  rollback: 'go back to the version before, or to a published one',
} as const;

export function loopCommand(): Command {
  const command = new Command('loop').description(
    'learning from the traffic: what it does, and the hand on it',
  );
  command.addCommand(statusCommand());
  for (const [name, description] of Object.entries(ORDERS))
    command.addCommand(orderCommand(name as keyof typeof ORDERS, description));
  return command
    .addCommand(receiptCommand())
    .addCommand(runCommand())
    .addCommand(regradeCommand())
    .addCommand(resetCommand());
}

function statusCommand(): Command {
  return onServer(new Command('status'))
    .description('what a running server learns; with --stored, what its store says')
    .option('--stored', 'read the store instead of asking a server')
    .action(async (flags: ServerFlags & { stored?: boolean }, self: Command) => {
      const { config, output } = contextOf(self);
      if (flags.stored) {
        const state = await withStore(config, readLoopState);
        if (state === null) throw new NotFoundError('the store knows of no loop: none has run yet');
        const { name, step, live, published, counts } = state;
        const known = `${published.length} published, ${counts.refused} refused, ${counts.rolledBack} rolled back`;
        output.result(state, `${name}, step ${step}, live ${live}; ${known}`);
        return;
      }
      const status = await callLoop<LoopStatus>(config, flags, 'GET', '');
      output.result(status, statusText(status));
    });
}

function orderCommand(name: keyof typeof ORDERS, description: string): Command {
  const command = onServer(new Command(name)).description(`${description} (of a running server)`);
  if (name === 'pause' || name === 'rollback') command.option('--reason <text>', 'kept and told on');
  if (name === 'rollback') command.option('--to <version>', 'a version that was published');
  return command.action(async (flags: ServerFlags & { reason?: string; to?: string }, self: Command) => {
    const { config, output } = contextOf(self);
    const body = {
      ...(flags.reason === undefined ? {} : { reason: flags.reason }),
      ...(flags.to === undefined ? {} : { version: flags.to }),
    };
    const status = await callLoop<LoopStatus>(config, flags, 'POST', `/${name}`, body);
    output.result(status, statusText(status));
  });
}

function runCommand(): Command {
  return new Command('run')
    .description('learn without a server: one step, and the gate where it is due')
    .option('--once', 'needed: one round (a server with loop.enabled goes on by itself)')
    .action(async (flags: { once?: boolean }, self: Command) => {
      if (!flags.once)
        throw new InvalidInputError(
          'expected --once: the command makes one round and ends; for more, serve with loop.enabled=true',
        );
      const context = contextOf(self);
      const status = await runOnce(context);
      context.output.result(status, statusText(status));
    });
}

async function runOnce({ config, output, signal }: CliContext): Promise<LoopStatus> {
  const progress = output.progress();
  const start = { onProgress: progress.on, onNote: output.note, signal };
  const policy = await openPolicyModel(config, start).finally(() => progress.stop());
  try {
    const retriever = await openIndex(config, start).finally(() => progress.stop());
    try {
      return await withStore(config, async (store) => {
        await store.useAuditor({
          modelDigest: policy.engine.info.modelDigest,
          tokenizer: policy.tokenizerSource,
        });
        const priority = createPriority(policy.engine, config.loop);
        let failure: Error | null = null;
        const hooks = {
          signal,
          onNote: output.note,
          onFailure: (error: Error, doing: string) => {
            output.note(`${doing}: ${error.message}`);
            failure = error;
          },
        };
        const opened = await openConfiguredLoop(config, { policy, priority, retriever, store }, hooks);
        const stop = (): void => void opened.close();
        signal.addEventListener('abort', stop);
        try {
          await opened.loop.once();
          const status = opened.loop.status();
          // What only could not be cleaned up is told, and is no failure of the round.
          if (failure !== null && status.last_error !== null) throw failure;
          return status;
        } finally {
          signal.removeEventListener('abort', stop);
          await opened.close();
        }
      });
    } finally {
      await retriever.close();
    }
  } finally {
    await policy.close();
  }
}

function regradeCommand(): Command {
  return new Command('regrade')
    .description('grade stored answers anew, after the rules of rewards changed')
    .option('--unlabelled', 'also those that nobody labelled: by the judge or the vote of their group')
    .action(async (flags: { unlabelled?: boolean }, self: Command) => {
      const context = contextOf(self);
      const { config, output, signal } = context;
      const { modelDigest, tokenizer } = await auditorOf(context);
      const options = {
        ...(await openScorers(config.reward, output.note)),
        modelDigest,
        tokenizer: createTokenizer(tokenizer),
        settings: rewardSettings(config.training),
        majority: config.reward.majority,
        withUnlabelled: flags.unlabelled ?? false,
        signal,
      };
      const done = await withStore(config, (store) => regrade(store, options));
      output.result(done, regradedText(done));
    });
}

function regradedText({ graded, left, otherModel, quarantined }: Regraded): string {
  const skipped = [
    ...(otherModel > 0 ? [`${otherModel} of other models`] : []),
    ...(quarantined > 0 ? [`${quarantined} quarantined`] : []),
  ];
  const others = skipped.length === 0 ? '' : `; skipped: ${skipped.join(', ')}`;
  return `${counted(graded, 'answer')} graded; nobody can tell of ${left}${others}`;
}

function statusText(status: LoopStatus): string {
  const { counts, labels, last_gate: gate, watch } = status;
  const why = status.paused_for ?? status.waits_for ?? status.last_error;
  const since = status.paused_for === null ? status.waits_since : null;
  const unusable = Object.entries(labels.logged_unusable).map(([reason, count]) => `  ${count}  ${reason}`);
  return [
    `${status.state}${why === null ? '' : `: ${why}`}`,
    ...(since === null ? [] : [`since     ${new Date(since).toISOString()}`]),
    `step      ${status.step}, ${status.steps_to_gate === 0 ? 'the gate is due' : `${counted(status.steps_to_gate, 'step')} to the gate`}, mode ${status.mode}, ${status.algorithm}`,
    `live      ${status.live}`,
    `versions  ${counts.published} published, ${counts.refused} refused, ${counts.rolled_back} rolled back`,
    `labels    ${counted(labels.answers, 'answer')}; ${counted(labels.questions_to_train_on, 'question')} to train on, ${labels.questions_to_judge_by} to judge by, ${counted(labels.pairs, 'pair')}`,
    ...(labels.questions_to_judge_by < labels.questions_needed_to_judge
      ? [
          `judging   not possible yet: a verdict takes ${labels.questions_needed_to_judge} questions; name a file of them in loop.gateData`,
        ]
      : []),
    ...Object.entries(labels.unused).map(([reason, count]) => `unused    ${count}  ${reason}`),
    ...(status.mode === 'logged' ? [`logged    ${labels.logged_usable} can be used; not:`, ...unusable] : []),
    ...(watch === null
      ? []
      : [
          `watched   ${watch.version.slice(0, 12)} against ${watch.against.slice(0, 12)}: ${counted(watch.pairs, 'pair')}${watch.beyond_share > 0 ? `; ${counted(watch.beyond_share, 'label')} beyond the share of a key` : ''}`,
        ]),
    ...(gate === null ? [] : [`gate      ${gate.version.slice(0, 12)} ${gate.verdict}`]),
    ...(gate?.tests.map(({ passed, words }) => `  ${passed ? 'yes' : 'no '}  ${words}`) ?? []),
    ...(gate?.tests.length === 0 ? gate.reasons.map((reason) => `  ${reason}`) : []),
  ].join('\n');
}
