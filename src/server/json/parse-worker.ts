// Worker entry: parses big bodies, so that the HTTP thread goes on.

import { type Method, serveWorker } from '../../runtime/index.js';
import type { Parsed } from './attempt.js';
import { type Bodies, type BodyKind, type ParseSettings, parseBytes } from './parse.js';

export interface ParseMethods {
  readonly parse: Method<{ readonly kind: BodyKind; readonly bytes: Uint8Array }, Parsed<Bodies[BodyKind]>>;
}

serveWorker<ParseMethods, ParseSettings>((settings) => ({
  methods: { parse: ({ kind, bytes }) => parseBytes(kind, bytes, settings) },
}));
