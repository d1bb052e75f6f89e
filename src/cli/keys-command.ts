import { Command, InvalidArgumentError } from 'commander';
import { createApiKey, type KeyRecord, SCOPES, type Scope } from '../trajectory/index.js';
import { contextOf } from './context.js';
import { withStore } from './store.js';

/** `keys create | list | revoke`: API keys with scopes; a running server takes note within seconds. */
export function keysCommand(): Command {
  const command = new Command('keys').description('API keys: who may ask, give feedback or administer');
  command
    .command('create')
    .description('make a key and show it this once; with the first one, the server asks everybody for a key')
    .argument('<name>', 'whose it is')
    .option('--scope <scope>', `${SCOPES.join(', ')}; may be repeated`, collectScope, [])
    .action(async (name: string, options: { scope: Scope[] }, self: Command) => {
      const { config, output } = contextOf(self);
      const { key, stored } = createApiKey(name, options.scope.length > 0 ? options.scope : ['ask']);
      await withStore(config, (store) => store.createKey(stored));
      output.note(`${stored.id} for ${name}, may ${stored.scopes.join(', ')}; the key is not shown again:`);
      output.result({ id: stored.id, name, scopes: stored.scopes, key }, key);
    });
  command
    .command('list')
    .description('all keys; only their digests are kept')
    .action(async (_options, self: Command) => {
      const { config, output } = contextOf(self);
      const keys = await withStore(config, (store) => store.keys());
      output.result(
        keys.map(({ digest: _digest, ...shown }) => shown),
        keys.length === 0 ? 'no keys' : keys.map(line).join('\n'),
      );
    });
  command
    .command('revoke')
    .description('end a key; what it said stays')
    .argument('<id>')
    .action(async (id: string, _options, self: Command) => {
      const { config, output } = contextOf(self);
      await withStore(config, (store) => store.revokeKey(id));
      output.result({ revoked: id }, `revoked ${id}`);
    });
  return command;
}

function line({ id, name, scopes, createdAt, revokedAt }: KeyRecord): string {
  const end = revokedAt === null ? '' : `  revoked ${new Date(revokedAt).toISOString()}`;
  return `${id}  ${name}  ${scopes.join(',')}  ${new Date(createdAt).toISOString()}${end}`;
}

function collectScope(text: string, before: Scope[]): Scope[] {
  if (!(SCOPES as readonly string[]).includes(text))
    throw new InvalidArgumentError(`expected one of ${SCOPES.join(', ')}`);
  return [...before, text as Scope];
}
