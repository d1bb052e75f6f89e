import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { CancelledError } from '../../../src/errors.js';
import { claimUnlessDone, removeOrphans } from '../../../src/weights/download/claim.js';
import { type Claim, claim } from '../../../src/weights/index.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'claim-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const host = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);
const leave = (key: string, owner: string, pid: number, text: string, ageMs = 0): void => {
  const path = join(folder, `${key}.${owner}.${pid}.0123abcd.partial`);
  writeFileSync(path, text);
  const then = new Date(Date.now() - ageMs);
  utimesSync(path, then, then);
};
const take = (key = 'k'): Promise<Claim> => claim({ folder, key, kind: 'file' });

test('one owner at a time, whoever asks', async () => {
  let inside = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      const held = await take();
      inside += 1;
      most = Math.max(most, inside);
      await new Promise((resolve) => setTimeout(resolve, 5));
      inside -= 1;
      await held.release(true);
    }),
  );
  expect(most).toBe(1);
  expect(readdirSync(folder)).toEqual([]);
});

test('work that is given back keeps its content for the next owner', async () => {
  const first = await take();
  writeFileSync(first.path, 'half');
  await first.release(false);
  const second = await take();
  expect(readFileSync(second.path, 'utf8')).toBe('half');
  await second.release(true);
  expect(readdirSync(folder)).toEqual([]);
});

test('the fullest of what dead processes left is taken over', async () => {
  leave('k', host, 2 ** 30, 'a bit');
  leave('k', host, 0, 'much more');
  leave('k.x', host, 0, 'of another key, longer than all');
  const held = await take();
  expect(readFileSync(held.path, 'utf8')).toBe('much more');
  await removeOrphans(folder, 'k');
  await held.release(true);
  expect(readdirSync(folder)).toEqual([`k.x.${host}.0.0123abcd.partial`]);
});

test('a living process is waited for until the work is done, or until it stops showing life', async () => {
  // The parent process of the test lives; it touched its claim just now.
  leave('k', host, process.ppid, 'theirs');
  let done = false;
  let waited = 0;
  const waiting = claimUnlessDone({
    folder,
    key: 'k',
    kind: 'file',
    isDone: async () => done,
    onWait: () => {
      waited += 1;
      setTimeout(() => {
        done = true;
      }, 300);
    },
  });
  expect(await waiting).toBeNull();
  expect(waited).toBe(1);
  leave('old', host, process.ppid, 'theirs', 61_000);
  const held = await take('old');
  expect(readFileSync(held.path, 'utf8')).toBe('theirs');
  await held.release(true);
});

test('of another host only the touch counts', async () => {
  leave('k', 'ffffffff', process.pid, 'fresh');
  const controller = new AbortController();
  const waiting = claim({
    folder,
    key: 'k',
    kind: 'file',
    signal: controller.signal,
    onWait: () => controller.abort(),
  });
  await expect(waiting).rejects.toThrow(CancelledError);
  leave('old', 'ffffffff', process.pid, 'old', 61_000);
  const held = await take('old');
  expect(readFileSync(held.path, 'utf8')).toBe('old');
  await held.release(true);
  expect(existsSync(held.path)).toBe(false);
});
