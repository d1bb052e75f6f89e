import { type Passage, type SearchR1Document, toSearchR1Document } from '../../retrieval/index.js';

/** The answer to one query: documents with scores, or documents alone. */
export function rowOf(
  passages: readonly Passage[],
  withScores: boolean,
): readonly ({ readonly document: SearchR1Document; readonly score: number } | SearchR1Document)[] {
  return passages.map((passage) =>
    withScores
      ? { document: toSearchR1Document(passage), score: passage.score }
      : toSearchR1Document(passage),
  );
}
