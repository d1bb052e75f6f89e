// The two words that operations and graphs share.

import type { ValueInfo } from '../runtime/index.js';

/** A typed, named tensor: name, element type, shape. */
export type Value = ValueInfo;

export type AttributeValue = number | string | readonly number[];
