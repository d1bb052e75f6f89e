import { Command } from 'commander';
import { dataFolder } from '../config/index.js';
import { SearchloopError } from '../errors.js';
import { folderId, type LoopReset, loopFolder, readOwner, resetLoop } from '../loop/index.js';
import type { TrajectoryStore } from '../trajectory/index.js';
import { confirm } from './confirm.js';
import { contextOf } from './context.js';
import { withStore } from './store.js';

/** `loop reset`: for a loop whose beginnings are gone. */
export function resetCommand(): Command {
  return new Command('reset')
    .description('begin anew: put state, checkpoints and versions aside; answers and feedback stay')
    .option('-y, --yes', 'do not ask')
    .action(async (flags: { yes?: boolean }, self: Command) => {
      const { config, output, signal } = contextOf(self);
      const folder = loopFolder(dataFolder(config));
      await withStore(config, async (store) => {
        const question = await questionOf(store, folder);
        if (!flags.yes && !(await confirm(question, signal)))
          throw new SearchloopError('not_confirmed', 'nothing was changed; --yes does not ask');
        const done = await resetLoop(store, { folder, onNote: output.note, signal });
        output.result(done, resetText(done));
      });
    });
}

async function questionOf(store: TrajectoryStore, folder: string): Promise<string> {
  const owner = await readOwner(store);
  const isElsewhere = owner !== null && owner.folder !== (await folderId(folder).catch(() => null));
  const warning = isElsewhere
    ? `\nThe state in the store is not that of ${folder}: where another server learns by it, its loop ends.`
    : '';
  return `Put the loop's state, and what lies in ${folder}, aside? The next one begins with the configured adapter.${warning}`;
}

function resetText({ state, folder }: LoopReset): string {
  return [
    state === null ? 'the store knew of no state' : `the state is kept in the store as "${state}"`,
    ...(folder === null ? [] : [`checkpoints and versions lie in ${folder}: delete them when you like`]),
  ].join('\n');
}
