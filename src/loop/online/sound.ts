// Which of a step's answers keep the invariants of a trajectory.

import { audit, type RecordNotes, type TrajectoryRecord } from '../../trajectory/index.js';
import { mapBreathing } from '../../util/breathing.js';
import { type Rejected, refuseRejected } from '../offline/rejected.js';
import type { Known } from './findings.js';
import type { LoopHouse } from './house.js';

interface Audited {
  readonly record: TrajectoryRecord;
  /** null: the record is in the store already. */
  readonly notes: RecordNotes | null;
}

export interface SoundParts {
  readonly house: Pick<LoopHouse, 'run' | 'training' | 'onNote'>;
  readonly known: Pick<Known, 'note'>;
}

/**
 * Records that break an invariant are never trained on, nor are those longer than the configuration allows. A stored one is
 * not read again; where rollouts of the step break them, that has a cause that must not be hidden.
 * @throws {IntegrityError} more than `training.maxRejectedShare` of the step's own rollouts do not
 */
export async function sound<Item extends Audited>(
  { house, known }: SoundParts,
  items: readonly Item[],
): Promise<Item[]> {
  const { maxSequenceTokens } = house.run;
  const rejected: Rejected[] = [];
  const isSound = await mapBreathing(items, ({ record, notes }) => {
    const tokens = record.tokenIds.length;
    if (tokens > maxSequenceTokens) {
      house.onNote(
        `rollout ${record.id} is not trained on: it has ${tokens} tokens, and training.maxSequenceTokens is ${maxSequenceTokens}`,
      );
      return false;
    }
    const fault = audit(record, house.training.tokenizer)[0];
    if (fault === undefined) return true;
    const reason = `${fault.rule}: ${fault.message}`;
    house.onNote(`rollout ${record.id} is not trained on: ${reason}`);
    if (notes === null) known.note(record.id, 'failed the audit');
    else rejected.push({ id: record.id, reason });
    return false;
  });
  const sampled = items.filter(({ notes }) => notes !== null).length;
  refuseRejected(rejected, sampled, house.run, 'then the loop goes on');
  return items.filter((_, at) => isSound[at]);
}
