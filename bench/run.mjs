// Runs a benchmark: node bench/run.mjs NAME [arguments]. Benchmarks are TypeScript; they are transpiled to
// dist/bench and import the built product as #searchloop/... (package.json, "imports").

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { transformSync } from '@swc/core';

const source = dirname(fileURLToPath(import.meta.url));
const target = join(source, '..', 'dist', 'bench');

function transpile(folder = '') {
  for (const entry of readdirSync(join(source, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) transpile(path);
    if (!entry.isFile() || !entry.name.endsWith('.ts')) continue;
    const { code } = transformSync(readFileSync(join(source, path), 'utf8'), {
      filename: path,
      jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
      module: { type: 'es6' },
    });
    const output = join(target, path.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(output), { recursive: true });
    writeFileSync(output, code);
  }
}

const names = readdirSync(source)
  .filter((name) => name.endsWith('.bench.ts'))
  .map((name) => name.replace('.bench.ts', ''));
const [name, ...args] = process.argv.slice(2);
if (!names.includes(name)) {
  process.stderr.write(`usage: npm run bench -- NAME [arguments]; NAME is one of: ${names.join(', ')}\n`);
  process.exit(2);
}
transpile();
const { run } = await import(pathToFileURL(join(target, `${name}.bench.js`)).href);
try {
  process.exitCode = (await run(args)) ?? 0;
} catch (error) {
  // Ctrl-C while a command of ours ran.
  if (error.name !== 'AbortError') throw error;
  process.stderr.write('interrupted\n');
  process.exitCode = 130;
}
