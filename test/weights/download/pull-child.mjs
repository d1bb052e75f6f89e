// Pulls a manifest in a process of its own, from the built project: `node pull-child.mjs <manifest> <home>`.
// Prints what came of it as one line of JSON.

import { pullModel } from '../../../dist/weights/index.js';
import { readManifest } from '../../../dist/weights/manifest.js';

const [manifest, home] = process.argv.slice(2);
process.stdout.write('started\n');
try {
  const files = await pullModel(readManifest(manifest), home);
  process.stdout.write(`${JSON.stringify({ files: files.map(({ file }) => file) })}\n`);
} catch (error) {
  process.stdout.write(`${JSON.stringify({ code: error.code, message: error.message })}\n`);
  process.exitCode = 1;
}
