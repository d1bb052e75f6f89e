// Tables in Markdown.

/** `-` where there is no number. */
export const decimal = (value: number): string => (Number.isNaN(value) ? '-' : value.toFixed(3));

/** Lines of a table; the first column to the left, numbers to the right. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i === 0 ? '---' : '--:'))), ...rows.map(line)];
}
