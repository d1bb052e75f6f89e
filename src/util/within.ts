/** What `within` gives where the time was up. */
export const LATE = Symbol('late');

/** Waits for a promise at most so long; it goes on by itself. @throws what it throws */
export async function within<Result>(promise: Promise<Result>, ms: number): Promise<Result | typeof LATE> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(() => resolve(LATE), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
