// Chats to text and to ids. In the ids, control tokens come from the template alone: the template is rendered over
// marked messages, the rendering is cut at added tokens, which marked text cannot hold, and the rest is unmarked
// and encoded as plain text.

import { UnsupportedError } from '../errors.js';
import { createTokenSplitter } from './added-tokens.js';
import { type ChatTemplate, compileChatTemplate, type TextMap } from './chat-template.js';
import { createMarking, type Marking, tellingCharacters } from './marked-text.js';
import type { ChatMessage, ChatOptions, Tokenizer } from './tokenizer.js';
import type { AddedTokenConfig, NamedTokens } from './tokenizer-json.js';

export interface ChatParts {
  readonly template: string | null;
  readonly named: NamedTokens;
  readonly addedTokens: readonly AddedTokenConfig[];
  /** Appends the ids of text that holds no added token. */
  readonly encodeText: (text: string, first: boolean, ids: number[]) => void;
}

type Chat = Pick<Tokenizer, 'hasChatTemplate' | 'renderChat' | 'encodeChat'>;

/** Maps every text inside a value; keys stay. */
function mapTexts(value: unknown, map: TextMap): unknown {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, map));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, map)]));
}

function textsOf(value: unknown): string[] {
  const texts: string[] = [];
  mapTexts(value, (text) => {
    texts.push(text);
    return text;
  });
  return texts;
}

/** Characters that added tokens begin or end with; a text without them names no token. */
function outerCharacters(
  tokens: readonly AddedTokenConfig[],
  telling: readonly string[],
): ReadonlySet<string> {
  const outer = tokens.flatMap(({ content }) => {
    const characters = [...content];
    return [characters[0] as string, characters.at(-1) as string];
  });
  return new Set(outer.filter((character) => telling.includes(character)));
}

/** @throws {UnsupportedError} from the functions, when the template cannot be parsed or the model has none */
export function createChat(parts: ChatParts): Chat {
  const telling = tellingCharacters(parts.addedTokens.map((token) => token.content));
  const outer = outerCharacters(parts.addedTokens, telling);
  const split = createTokenSplitter(parts.addedTokens);
  let compiled: ChatTemplate | null = null;

  const template = (): ChatTemplate => {
    if (parts.template === null)
      throw new UnsupportedError('this model has no chat template; it takes plain prompts only');
    compiled ??= compileChatTemplate(parts.template);
    return compiled;
  };
  /** Roles and variables are compared with texts of the template, so only what could name a token is changed. */
  const whereTelling =
    (map: TextMap): TextMap =>
    (text) =>
      [...outer].some((character) => text.includes(character)) ? map(text) : text;

  const variablesFor = (
    messages: readonly ChatMessage[],
    options: ChatOptions | undefined,
    map: TextMap,
  ) => ({
    tools: null,
    documents: null,
    ...(mapTexts(options?.variables ?? {}, whereTelling(map)) as Record<string, unknown>),
    ...parts.named,
    messages: messages.map(({ role, content }) => ({ role: whereTelling(map)(role), content: map(content) })),
    add_generation_prompt: options?.addGenerationPrompt ?? true,
  });
  const renderChat: Chat['renderChat'] = (messages, options) =>
    template().render(variablesFor(messages, options, (text) => text));

  /**
   * A marked rendering. A template may look for texts inside messages (`'</think>' in content`), so those are
   * marked as well; should that change what the template does elsewhere, they are left as they are. Either way the
   * messages stay marked.
   */
  const renderMarked = (
    messages: readonly ChatMessage[],
    options: ChatOptions | undefined,
    marking: Marking,
  ) => {
    const variables = variablesFor(messages, options, marking.mark);
    const mapped = template().render(variables, whereTelling(marking.mark));
    const looks = template().lookedFor.some((text) => whereTelling(marking.mark)(text) !== text);
    if (!looks || marking.unmark(mapped) === renderChat(messages, options)) return mapped;
    const opaque = template().render(variables);
    return marking.unmark(opaque) === renderChat(messages, options) ? opaque : mapped;
  };

  return {
    hasChatTemplate: parts.template !== null,
    renderChat,
    encodeChat(messages, options) {
      const texts = textsOf([messages, options?.variables ?? {}, parts.template ?? '']);
      const marking = createMarking(telling, texts);
      const ids: number[] = [];
      for (const section of split(renderMarked(messages, options, marking)))
        if ('id' in section) ids.push(section.id);
        else parts.encodeText(marking.unmark(section.text), section.start === 0, ids);
      return ids;
    },
  };
}
