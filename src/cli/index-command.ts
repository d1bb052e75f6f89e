import { Command } from 'commander';
import { addCommand } from './index/add.js';
import { buildCommand } from './index/build.js';
import { infoCommand } from './index/info.js';
import { listCommand } from './index/list.js';
import { pullCommand } from './index/pull.js';
import { removeCommand } from './index/remove.js';
import { searchCommand } from './index/search.js';
import { verifyCommand } from './index/verify.js';

/** `index pull | build | list | info | verify | search | add | remove`: makes, checks and changes search indexes. */
export function indexCommand(): Command {
  return new Command('index')
    .description('build, check, search and change indexes of passages')
    .addCommand(pullCommand())
    .addCommand(buildCommand())
    .addCommand(listCommand())
    .addCommand(infoCommand())
    .addCommand(verifyCommand())
    .addCommand(searchCommand())
    .addCommand(addCommand())
    .addCommand(removeCommand());
}
