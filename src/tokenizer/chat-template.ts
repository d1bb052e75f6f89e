// Jinja chat templates. Two repairs are made on the parsed template: `strip` and its relatives take arguments and
// know Python's white space (the library's do neither), and texts that the template looks for inside messages
// become variables, so that a rendering with marked messages can look for marked texts.

import { Template } from '@huggingface/jinja';
import { InvalidInputError, UnsupportedError } from '../errors.js';

/** Text to text, for instance the marking of message content. */
export type TextMap = (text: string) => string;

export interface ChatTemplate {
  /** Texts that the template looks for inside other texts, such as `</think>`. */
  readonly lookedFor: readonly string[];
  /**
   * @param variables what the template sees
   * @param mapLookedFor how the texts that the template looks for are written; by default as they are
   * @throws {InvalidInputError} with the message of the template's own refusal (`raise_exception`), or of any
   *   other failure to render these variables
   */
  render(variables: Readonly<Record<string, unknown>>, mapLookedFor?: TextMap): string;
}

/** A node of the library's syntax tree, as far as it is rewritten here. */
interface SyntaxNode {
  type: string;
  [member: string]: unknown;
}

const PYTHON_SPACE = '\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

function strip(text: unknown, characters: unknown, left: boolean, right: boolean): string {
  const value = String(text ?? '');
  const isStripped =
    typeof characters === 'string'
      ? (character: string) => characters.includes(character)
      : (character: string) => STRIPPED.test(character);
  let [start, end] = [0, value.length];
  if (left) while (start < end && isStripped(value[start] as string)) start++;
  if (right) while (end > start && isStripped(value[end - 1] as string)) end--;
  return value.slice(start, end);
}

const STRIPPED = new RegExp(`[${PYTHON_SPACE}]`);

/** Python's string methods under the names that rewritten templates call. */
const METHODS: Readonly<Record<string, (text: unknown, characters?: unknown) => string>> = {
  strip: (text, characters) => strip(text, characters, true, true),
  lstrip: (text, characters) => strip(text, characters, true, false),
  rstrip: (text, characters) => strip(text, characters, false, true),
};

const functionName = (method: string): string => `__python_${method}`;
const literalName = (index: number): string => `__looked_for_${index}`;

const FUNCTIONS = Object.fromEntries(
  Object.entries(METHODS).map(([name, method]) => [functionName(name), method]),
);

const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && typeof (value as SyntaxNode).type === 'string';

function children(value: unknown): SyntaxNode[] {
  if (isNode(value)) return [value];
  if (Array.isArray(value)) return value.flatMap(children);
  if (value instanceof Map) return [...value].flatMap(children);
  return [];
}

const identifier = (name: string): SyntaxNode => ({ type: 'Identifier', value: name });

/** The name of the method that a call is made on, such as `split` in `text.split(',')`. */
function calledMethod(node: SyntaxNode): string | null {
  const callee = node['callee'];
  if (node.type !== 'CallExpression' || !isNode(callee) || callee.type !== 'MemberExpression') return null;
  const property = callee['property'];
  return callee['computed'] !== true && isNode(property) ? String(property['value']) : null;
}

function callMethod(node: SyntaxNode, method: string, object: unknown, args: unknown[]): void {
  node.type = 'CallExpression';
  node['callee'] = identifier(functionName(method));
  node['args'] = [object, ...args];
}

/** Rewrites the tree in place and returns the texts that are looked for, in the order of their variables. */
function rewrite(program: SyntaxNode): string[] {
  const lookedFor: string[] = [];
  const release = (node: unknown): void => {
    if (!isNode(node) || node.type !== 'StringLiteral') return;
    lookedFor.push(String(node['value']));
    node.type = 'Identifier';
    node['value'] = literalName(lookedFor.length - 1);
  };
  const visit = (node: SyntaxNode): void => {
    for (const member of Object.values(node)) children(member).forEach(visit);
    const method = calledMethod(node);
    if (method !== null) {
      const args = node['args'] as unknown[];
      args.forEach(release);
      if (Object.hasOwn(METHODS, method))
        callMethod(node, method, (node['callee'] as SyntaxNode)['object'], args);
    }
    if (
      node.type === 'BinaryExpression' &&
      ['in', 'not in'].includes(String((node['operator'] as SyntaxNode)['value']))
    )
      [node['left'], node['right']].forEach(release);
    if (node.type !== 'FilterExpression') return;
    const filter = node['filter'] as SyntaxNode;
    if (filter.type === 'Identifier' && filter['value'] === 'trim')
      callMethod(node, 'strip', node['operand'], []);
    else if (filter.type === 'CallExpression' && (filter['callee'] as SyntaxNode)['value'] === 'replace')
      (filter['args'] as unknown[]).forEach(release);
  };
  visit(program);
  return lookedFor;
}

const reason = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

/** @throws {UnsupportedError} when the template cannot be parsed */
export function compileChatTemplate(source: string): ChatTemplate {
  let template: Template;
  try {
    template = new Template(source);
  } catch (cause) {
    throw new UnsupportedError(`the model's chat template cannot be parsed: ${reason(cause)}`, { cause });
  }
  const lookedFor = rewrite(template.parsed as unknown as SyntaxNode);
  return {
    lookedFor,
    render(variables, mapLookedFor = (text) => text) {
      const literals = lookedFor.map((text, index) => [literalName(index), mapLookedFor(text)]);
      try {
        return template.render({ ...variables, ...FUNCTIONS, ...Object.fromEntries(literals) });
      } catch (cause) {
        throw new InvalidInputError(
          `the model's chat template refused the messages: ${reason(cause)}`,
          'messages',
          {
            cause,
          },
        );
      }
    },
  };
}
