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
const take = (key = 'k', more: { staleMs?: number; onLost?: () => void } = {}): Promise<Claim> =>
  claim({ folder, key, kind: 'file', ...more });

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
  const held = await take('old', { staleMs: 400 });
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
  const held = await take('old', { staleMs: 400 });
  expect(readFileSync(held.path, 'utf8')).toBe('old');
  await held.release(true);
  expect(existsSync(held.path)).toBe(false);
});

test.each([
  ['an hour ago', 3_600_000],
  ['in a day', -86_400_000],
])(
  'an owner whose clock says that it is %s lives while it touches its claim, and no longer',
  async (_, agoMs) => {
    const path = join(folder, 'k.ffffffff.7.0123abcd.partial');
    leave('k', 'ffffffff', 7, 'theirs', agoMs);
    let touches = 0;
    const heart = setInterval(() => {
      const then = new Date(Date.now() - agoMs + ++touches);
      utimesSync(path, then, then);
    }, 20);
    let isTaken = false;
    const waiting = take('k', { staleMs: 4000 }).then((held) => {
      isTaken = true;
      return held;
    });
    // Longer than one waits for an owner whose last touch seems to be long ago.
    while (touches < 75) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(isTaken).toBe(false);
    clearInterval(heart);
    const held = await waiting;
    expect(readFileSync(held.path, 'utf8')).toBe('theirs');
    await held.release(true);
  },
);

test('who was taken for dead is told, and who gave its claim back is not', async () => {
  let lost = 0;
  const onLost = (): void => {
    lost += 1;
  };
  const given = await take('given', { staleMs: 240, onLost });
  await given.release(true);
  const robbed = await take('k', { staleMs: 240, onLost });
  rmSync(robbed.path);
  while (lost === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(lost).toBe(1);
  await robbed.release(true);
});
