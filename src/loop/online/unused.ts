// Labels from which nothing is learned as things are, by reason: for whoever wonders why nothing happens.

import type { LoopHouse } from './house.js';
import type { LabelIndex } from './labels.js';
import { learnsPairs } from './logged-answers.js';

/** Beside logged answers, which are counted by reasons of their own. */
export function unusedLabels(
  house: Pick<LoopHouse, 'run' | 'settings' | 'learnsUnlabelled'>,
  labels: LabelIndex,
): Readonly<Record<string, number>> {
  const { mode } = house.settings;
  const isReplay = mode === 'replay';
  const counts = {
    // A rating says nothing about another answer to the question.
    'rated, with no right answer known to compare new ones with':
      isReplay && !house.learnsUnlabelled
        ? labels.answers().filter((answer) => answer.goldenAnswers.length === 0 && labels.mayTeach(answer))
            .length
        : 0,
    'compared, though both answers have labels': labels.decidedPairs().length,
    [`compared, and ${house.run.algorithm} knows no groups`]: learnsPairs(house) ? 0 : labels.pairs().length,
    'not to be asked: the window is too small for the question': labels.unaskable.size,
  };
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}
