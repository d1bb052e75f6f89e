// Search-R1's form of a passage: one text, the title in quotation marks on its first line.

/** A passage in Search-R1's retrieval protocol and corpus files. */
export interface SearchR1Document {
  readonly id: string;
  readonly contents: string;
}

export function toSearchR1Document(passage: {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}): SearchR1Document {
  return { id: passage.id, contents: `"${passage.title}"\n${passage.text}` };
}

/** Title (without its quotation marks) and text; the title is empty when there is one line only. */
export function splitContents(contents: string): { title: string; text: string } {
  const at = contents.indexOf('\n');
  if (at < 0) return { title: '', text: contents };
  const first = contents.slice(0, at).trim();
  const quoted = first.length >= 2 && first.startsWith('"') && first.endsWith('"');
  return { title: quoted ? first.slice(1, -1) : first, text: contents.slice(at + 1) };
}
