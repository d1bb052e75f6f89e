import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { transformSync } from '@swc/core';

const dist = resolve(__dirname, '..', '..', '..', 'dist');

/** Threads run JavaScript: writes an entry of this folder and its model to `folder`, over what is built in dist/. */
export function compileEntry(
  folder: string,
  names: readonly string[] = ['bigram-model', 'bigram-entry'],
): string {
  mkdirSync(folder, { recursive: true });
  for (const name of names) {
    const source = readFileSync(join(__dirname, `${name}.ts`), 'utf8')
      .replaceAll('../../../src/', `${pathToFileURL(dist).href}/`)
      .replaceAll(/'\.\/([\w-]+)\.js'/g, "'./$1.mjs'");
    const { code } = transformSync(source, {
      jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
      module: { type: 'es6' },
    });
    writeFileSync(join(folder, `${name}.mjs`), code);
  }
  return join(folder, `${names.at(-1)}.mjs`);
}
