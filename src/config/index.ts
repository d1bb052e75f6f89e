// config/: the one validated tree of settings, and where files lie.
// Parsed once from file, environment and flags, then frozen.
// Never imports another room; the only reader of the environment.

export { childEnvironment, type HubEnvironment, hubEnvironment } from './environment.js';
export { environmentName, loadConfig } from './load.js';
export { dataFolder, homeFolder, indexesFolder, packageRoot } from './paths.js';
export {
  type Config,
  configSchema,
  type EngineConfig,
  type LoopConfig,
  type ModelConfig,
  type RewardConfig,
  type RolloutConfig,
  type ServerConfig,
  type TrainingConfig,
} from './schema.js';
