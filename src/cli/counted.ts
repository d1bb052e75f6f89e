/** `1 answer`, `2 answers`. @param many  where it is not `one` and an s */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** The unit of a progress, which is in the plural, as it reads after `count`: `passages at 3/s` is `passage at 3/s` after 1. */
export function unitAfter(count: number, unit: string): string {
  return count === 1
    ? unit.replace(/^(\w+?)(ies|s)\b/, (_, stem, end) => (end === 'ies' ? `${stem}y` : stem))
    : unit;
}
