// The trainer's side of the pool: a task opens or finds its session in the thread and runs one step.

import { CancelledError, UnavailableError } from '../../errors.js';
import { poolTask, type TaskContext } from '../../runtime/index.js';
import type {
  CommittedState,
  SessionPoint,
  StepReport,
  StepWork,
  TrainerProgress,
  TrainerResult,
  TrainerTask,
} from './messages.js';
import { TrainerSession } from './session.js';
import type { OpenTrainable } from './trainable.js';

/** Makes the pool's task of a way to open models: `export default trainerTask(open)`. */
export function trainerTask<Spec>(open: OpenTrainable<Spec>) {
  const sessions = new Map<string, TrainerSession>();
  /** The session where the task starts from; a thread that is new reads it from the last commit. */
  const sessionAt = async (
    key: string,
    spec: Spec,
    from: SessionPoint,
    committed: CommittedState,
  ): Promise<TrainerSession> => {
    const held = sessions.get(key);
    if (held !== undefined && isAt(held.standsAt, from)) return held;
    held?.close();
    sessions.delete(key);
    if (!isAt(committed, from))
      throw new UnavailableError(`${textOf(from)} of run ${key} was lost with its thread`);
    const session = await TrainerSession.resume(open, spec, committed.folder);
    sessions.set(key, session);
    if (!isAt(session.standsAt, from))
      throw new UnavailableError(
        `${committed.folder} holds ${textOf(session.standsAt)}, expected ${textOf(from)}`,
      );
    return session;
  };
  const close = (key: string): void => {
    sessions.get(key)?.close();
    sessions.delete(key);
  };

  return poolTask<TrainerTask<Spec>, TrainerResult, TrainerProgress>(async (task, context) => {
    if (task.kind === 'close') {
      close(task.session);
      return null;
    }
    if (task.kind === 'begin') {
      close(task.session);
      const session = await TrainerSession.begin(open, task.spec);
      sessions.set(task.session, session);
      return session.commit(task.root, task.configDigest);
    }
    if (task.kind === 'adopt') {
      close(task.session);
      const session = await TrainerSession.resume(open, task.spec, task.folder);
      sessions.set(task.session, session);
      return session.standing(task.folder);
    }
    const session = await sessionAt(task.session, task.spec, task.from, task.committed);
    if (task.kind === 'commit') return session.commit(task.root, task.configDigest, task.carried);
    return runCancellable(session, task.work, context);
  });
}

const isAt = (point: SessionPoint, { step, state }: SessionPoint): boolean =>
  point.step === step && point.state === state;

const textOf = ({ step, state }: SessionPoint): string => `step ${step}, state ${state.slice(0, 12)}`;

async function runCancellable(
  session: TrainerSession,
  work: StepWork,
  context: TaskContext<TrainerProgress>,
): Promise<StepReport> {
  const terminate = (): void => session.terminate();
  context.signal.addEventListener('abort', terminate);
  const step = () =>
    session.step(work, {
      microBatchTokens: work.microBatchTokens,
      throwIfCancelled: () => context.throwIfCancelled(),
      onTokens: (tokens) => context.report({ tokens }),
    });
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof CancelledError)) throw error;
    context.throwIfCancelled();
    // Nobody cancelled this one: the request was meant for a step that had ended when it came.
    return await step();
  } finally {
    context.signal.removeEventListener('abort', terminate);
  }
}
