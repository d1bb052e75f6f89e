import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { transformSync } from '@swc/core';

const dist = resolve(__dirname, '..', '..', 'dist');

/**
 * Threads and child processes run JavaScript: writes TypeScript files of the tests to one folder, over what is
 * built in dist/.
 * @param files  paths; they may import each other by `./name.js`
 * @returns      path of the last one
 */
export function compileEntry(folder: string, files: readonly string[]): string {
  mkdirSync(folder, { recursive: true });
  const targets = files.map((file) => {
    const source = readFileSync(file, 'utf8')
      .replaceAll('../../../src/', `${pathToFileURL(dist).href}/`)
      .replaceAll(/'\.\/([\w-]+)\.js'/g, "'./$1.mjs'");
    const { code } = transformSync(source, {
      jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
      module: { type: 'es6' },
    });
    const target = join(folder, basename(file).replace(/\.ts$/, '.mjs'));
    writeFileSync(target, code);
    return target;
  });
  return targets.at(-1) as string;
}
