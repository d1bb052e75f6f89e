// Entry of the thread that reads one adapter and ends: decoding goes on meanwhile.

import type { DecoderConfig } from '../model/index.js';
import { serveWorker, transferring } from '../runtime/index.js';
import { buffersOf, readLaidOut } from './core/read-adapter.js';
import type { ReaderMethods } from './messages.js';

export interface ReaderStart {
  readonly config: DecoderConfig;
  readonly maxRank: number;
}

serveWorker<ReaderMethods, ReaderStart>(({ config, maxRank }) => ({
  methods: {
    read({ folder }) {
      const adapter = readLaidOut(folder, config, maxRank);
      return transferring(adapter, buffersOf(adapter));
    },
  },
}));
