import type { ServerConfig } from '../../config/index.js';

export type ReasoningFields = ServerConfig['reasoningFields'];

/** Reasoning under the names that clients read; each reads one of them. */
export function reasoningFieldsOf(
  text: string,
  fields: ReasoningFields,
): { readonly reasoning_content?: string; readonly reasoning?: string } {
  return {
    ...(fields === 'reasoning' ? {} : { reasoning_content: text }),
    ...(fields === 'reasoning_content' ? {} : { reasoning: text }),
  };
}
