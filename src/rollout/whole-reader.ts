// Reads a turn whose whole text is the answer: the one-turn methods and an answer that the environment
// opened. Blocks of the protocol's other tags are reasoning; tags themselves are never shown.

import { leadingSpaceLength, PROTOCOL_TAGS, type ProtocolTag } from '../trajectory/index.js';
import { createTagScanner, type Scanned } from './tag-scanner.js';
import { runsText, type TokenRun } from './token-runs.js';
import { cutTagLength, type Reading, type TurnReader } from './turn-reader.js';

export interface WholeReaderOptions {
  /** `all`: every tag of the protocol; `think`: only think tags, the rest is text (plain chat). */
  readonly tags: 'all' | 'think';
  /** The prompt left a `<think>` open. */
  readonly thinking?: boolean;
}

const THINK_TAGS: readonly ProtocolTag[] = ['<think>', '</think>'];

export function createWholeReader(options: WholeReaderOptions): TurnReader {
  const closings: readonly ProtocolTag[] = options.tags === 'all' ? ['</answer>'] : [];
  const tags = options.tags === 'all' ? PROTOCOL_TAGS : THINK_TAGS;
  const scanner = createTagScanner(tags);
  let inBlock = options.thinking ?? false;
  let closed = false;
  /** White space behind a tag sets it off from the text; it is no part of the answer. */
  let afterTag = false;
  let first = true;

  const readText = (run: TokenRun): Reading[] => {
    const text = afterTag && !inBlock ? run.text.slice(leadingSpaceLength(run.text)) : run.text;
    if (text === '') return [];
    const reading: Reading = {
      channel: inBlock ? 'reasoning' : 'answer',
      run: { ...run, text },
      border: afterTag || first,
    };
    afterTag = false;
    first = false;
    return [reading];
  };

  const read = (item: Scanned): Reading[] => {
    if (closed) return [];
    if (item.kind === 'text') return readText(item.run);
    afterTag = true;
    if (item.tag === '</answer>') closed = true;
    else inBlock = !item.tag.startsWith('</') && item.tag !== '<answer>';
    return [];
  };

  return {
    tags,
    closings,
    get answering() {
      return !inBlock && !closed;
    },
    get closed() {
      return closed;
    },
    action: { kind: 'answer' },
    push: (run) => scanner.push(run).flatMap(read),
    end(cut) {
      if (closed) return [];
      const rest = scanner.flush();
      const dropped = !inBlock && cutTagLength(runsText(rest), closings, cut) > 0;
      return dropped ? [] : rest.flatMap(readText);
    },
  };
}
