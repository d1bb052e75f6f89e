import { Command } from 'commander';
import { auditCommand } from './trajectories/audit.js';
import { deleteCommand } from './trajectories/delete.js';
import { listCommand } from './trajectories/list.js';
import { replayCommand } from './trajectories/replay-command.js';
import { showCommand } from './trajectories/show.js';
import { exportCommand, importCommand } from './trajectories/transfer.js';

/** `trajectories list | show | export | import | delete | audit | replay`. */
export function trajectoriesCommand(): Command {
  return new Command('trajectories')
    .description('stored answers: every token with its origin, log-probability and policy version')
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(exportCommand())
    .addCommand(importCommand())
    .addCommand(deleteCommand())
    .addCommand(auditCommand())
    .addCommand(replayCommand());
}
