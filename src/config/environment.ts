import { ConfigError } from '../errors.js';

/** How the model hub is reached, by the variables that its own tools use. */
export interface HubEnvironment {
  /** Without a slash at the end. */
  readonly endpoint: string;
  readonly token: string | null;
  /** Do not try the hub at all. */
  readonly offline: boolean;
}

const DEFAULT_ENDPOINT = 'https://huggingface.co';

/** Our environment with these variables, for a program that we start. */
export function childEnvironment(
  variables: Readonly<Record<string, string>>,
): Record<string, string | undefined> {
  return { ...process.env, ...variables };
}

/** Reads HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE. */
export function hubEnvironment(
  env: Readonly<Record<string, string | undefined>> = process.env,
): HubEnvironment {
  const endpoint = (env.HF_ENDPOINT || DEFAULT_ENDPOINT).replace(/\/+$/, '');
  if (!/^https?:$/.test(URL.canParse(endpoint) ? new URL(endpoint).protocol : ''))
    throw new ConfigError(
      `HF_ENDPOINT: expected an http or https address, found ${JSON.stringify(endpoint)}`,
    );
  return {
    endpoint,
    token: env.HF_TOKEN?.trim() || null,
    offline: /^(1|true|yes|on)$/i.test(env.HF_HUB_OFFLINE ?? ''),
  };
}
