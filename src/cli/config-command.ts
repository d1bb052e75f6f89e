import { Command } from 'commander';
import { stringify } from 'yaml';
import { z } from 'zod';
import {
  type Config,
  configSchema,
  dataFolder,
  environmentName,
  homeFolder,
  indexesFolder,
} from '../config/index.js';
import { contextOf } from './context.js';

/** `config show | schema | paths`: what the settings are, what they may be, and where files lie. */
export function configCommand(): Command {
  const command = new Command('config').description('show the settings and what each of them means');
  command
    .command('show')
    .description('the settings in force: file, environment and flags together')
    .action((_options, self: Command) => {
      const { config, output } = contextOf(self);
      const shown = withoutSecrets(config);
      output.result(shown, stringify(shown).trimEnd());
    });
  command
    .command('schema')
    .description('every setting with its default, its environment variable and its meaning')
    .action((_options, self: Command) => {
      const { output } = contextOf(self);
      output.result(z.toJSONSchema(configSchema, { io: 'input' }), settingsText());
    });
  command
    .command('paths')
    .description('folders of models, indexes and the trajectory store')
    .action((_options, self: Command) => {
      const { config, output } = contextOf(self);
      const paths = { models: homeFolder(config), indexes: indexesFolder(config), data: dataFolder(config) };
      output.result(paths, `models   ${paths.models}\nindexes  ${paths.indexes}\ndata     ${paths.data}`);
    });
  return command;
}

/** API keys are secrets: their number is shown, never their text; so is the password in an address. */
function withoutSecrets(config: Config): unknown {
  const { server, store, reward } = config;
  return {
    ...config,
    server: { ...server, apiKeys: server.apiKeys.map(() => '***') },
    reward: { ...reward, judgeKey: reward.judgeKey === null ? null : '***' },
    store: { ...store, url: store.url === null ? null : store.url.replace(/:[^/].*@/, ':***@') },
  };
}

interface SettingSchema {
  readonly description?: string;
}

function settingsText(): string {
  const defaults = configSchema.parse({});
  const schema = z.toJSONSchema(configSchema, { io: 'output' }) as unknown as {
    properties: Record<string, { properties: Record<string, SettingSchema> }>;
  };
  const lines: string[] = [];
  for (const [section, keys] of Object.entries(defaults)) {
    lines.push(`${section}:`);
    for (const [key, value] of Object.entries(keys)) {
      const description = schema.properties[section]?.properties[key]?.description ?? '';
      lines.push(
        `  ${key}: ${JSON.stringify(value)}`,
        `      ${description}  [${environmentName(section, key)}]`,
      );
    }
  }
  return lines.join('\n');
}
