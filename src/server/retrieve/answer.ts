import type { Passage } from '../../retrieval/index.js';

/** A passage as Search-R1's server gives it: the title in quotation marks on the first line of `contents`. */
interface Document {
  readonly id: string;
  readonly contents: string;
  readonly title: string;
}

/** The answer to one query: documents with scores, or documents alone. */
export function rowOf(
  passages: readonly Passage[],
  withScores: boolean,
): readonly ({ readonly document: Document; readonly score: number } | Document)[] {
  return passages.map((passage) =>
    withScores ? { document: documentOf(passage), score: passage.score } : documentOf(passage),
  );
}

function documentOf({ id, title, text }: Passage): Document {
  return { id, contents: `"${title}"\n${text}`, title };
}
