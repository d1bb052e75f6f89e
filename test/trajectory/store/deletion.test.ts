// What goes with what is deleted, on both databases.

import { ConflictError } from '../../../src/errors.js';
import type { TrajectoryStore } from '../../../src/trajectory/index.js';
import type { StepInput } from '../../../src/trajectory/store/types.js';
import { onBothDatabases } from './both-databases.js';
import { feedback, makeRecord, notes } from './support.js';

let store: TrajectoryStore;
const newest = { limit: 100, order: 'newest' } as const;

const stepOf = (digest: string, trajectoryIds: readonly string[]): StepInput => ({
  adapter: { digest, parentDigest: null, receipt: null },
  trajectoryIds,
  documents: {},
});

onBothDatabases(
  'deletion',
  (opened) => {
    store = opened.store;
  },
  () => {
    test('a person\u2019s data goes with all that was made of it, and the adapters it reached are named', async () => {
      for (const id of ['mine1', 'mine2', 'other'])
        await store.put(makeRecord(id), notes({ userKey: id.slice(0, 4) }));
      await store.addFeedback(feedback('mine1', { reward: 1 }));
      await store.addFeedback(feedback('other', { reward: 0, preferredOver: 'mine2' }));
      const step = (digest: string, parentDigest: string | null, trajectoryIds: string[]) =>
        store.commitStep({
          adapter: { digest, parentDigest, receipt: { seed: 1 } },
          trajectoryIds,
          documents: { loop: { at: digest }, gone: null },
        });
      await step('v1', null, ['mine1', 'mine2', 'other']);
      await step('v2', 'v1', ['other']);
      await step('v3', null, ['other']);
      expect(await store.readDocument('loop')).toEqual({ at: 'v3' });
      // Whoever expects something else writes nothing, no step either; who comes a second time is no stranger.
      const late = { documents: { loop: { at: 'late' } }, expected: { loop: { at: 'v2' } } };
      await expect(store.putDocuments(late.documents, late.expected)).rejects.toThrow(ConflictError);
      await expect(store.putDocuments({ new: 1, loop: null }, { new: 0 })).rejects.toThrow(ConflictError);
      const adapter = { digest: 'v4', parentDigest: null, receipt: null };
      const input = { adapter, trajectoryIds: [], ...late };
      await expect(store.commitStep(input)).rejects.toThrow('the document "loop" reads {"at":"v3"}');
      expect((await store.adapters()).map(({ digest }) => digest)).toEqual(['v1', 'v2', 'v3']);
      for (let time = 0; time < 2; time++) await store.putDocuments({ once: { n: 1 } }, { once: null });
      expect(await store.readDocument('once')).toEqual({ n: 1 });
      expect(await store.readDocument('loop')).toEqual({ at: 'v3' });

      const report = await store.delete({ userKey: 'mine' });
      expect(report).toEqual({
        trajectories: ['mine1', 'mine2'],
        feedback: 1,
        adapters: [
          { digest: 'v1', records: 2 },
          { digest: 'v2', records: 0 },
        ],
        leftovers: null,
      });
      expect((await store.list({}, newest)).map(({ id }) => id)).toEqual(['other']);
      expect(await store.feedbackOf(['mine1', 'other'])).toMatchObject([{ reward: 0, preferredOver: null }]);
      expect(await store.adapters()).toMatchObject([
        { digest: 'v1', trajectoryIds: ['other'], deletedRecords: 2, receipt: { seed: 1 } },
        { digest: 'v2', parentDigest: 'v1', trajectoryIds: ['other'] },
        { digest: 'v3' },
      ]);
      // A step that ends after the deletion is told.
      expect(
        await store.commitStep({
          adapter: { digest: 'v4', parentDigest: null, receipt: null },
          trajectoryIds: ['mine1', 'other'],
          documents: {},
        }),
      ).toEqual({ missing: ['mine1'] });
      expect(await store.delete({ userKey: 'mine' })).toEqual({
        trajectories: [],
        feedback: 0,
        adapters: [],
        leftovers: null,
      });
    });

    test('a rollout is kept only as long as the answer is there whose question it repeats', async () => {
      await store.put(makeRecord('asked'), notes({ userKey: 'ann' }));
      expect(
        await store.putRollout(makeRecord('r1'), notes({ userKey: 'ann', source: 'train' }), 'asked'),
      ).toBe(true);
      await store.delete({ userKey: 'ann' });
      expect(
        await store.putRollout(makeRecord('r2'), notes({ userKey: 'ann', source: 'train' }), 'asked'),
      ).toBe(false);
      expect(await store.list({}, newest)).toEqual([]);
    });

    test('a rollout goes with the answer whose question it repeats, also where that one is named by its id or by its age', async () => {
      const rollouts = async (origin: string, ...ids: string[]): Promise<void> => {
        await store.put(makeRecord(origin, { createdAt: 1000 }), notes());
        for (const id of ids)
          await store.putRollout(makeRecord(id, { createdAt: 9000 }), notes({ source: 'train' }), origin);
      };
      await rollouts('asked', 'r1', 'r2');
      await rollouts('other', 'r3');
      expect((await store.get('r1'))?.notes).toEqual(notes({ source: 'train', originId: 'asked' }));
      await store.commitStep(stepOf('rolled', ['r1', 'r2', 'r3']));
      const report = await store.delete({ ids: ['asked'] });
      expect(report.trajectories).toEqual(['asked', 'r1', 'r2']);
      expect(report.adapters).toEqual([{ digest: 'rolled', records: 2 }]);
      await rollouts('third', 'r4');
      // One by one that a rollout was made of: import may bring such.
      await store.put(makeRecord('r5', { createdAt: 9000 }), notes({ source: 'import', originId: 'r4' }));
      expect((await store.delete({ createdBefore: 2000 })).trajectories).toEqual([
        'other',
        'third',
        'r3',
        'r4',
        'r5',
      ]);
      await rollouts('fourth', 'r6');
      expect(await store.prune({ createdBefore: 2000, maxBytes: null })).toBe(2);
      expect(await store.list({}, newest)).toEqual([]);
    });

    test('only what people had deleted counts against an adapter, not what retention took', async () => {
      const deleted = async (digest: string) =>
        (await store.adapters()).find((adapter) => adapter.digest === digest)?.deletedRecords;
      for (const id of ['old', 'wish', 'kept'])
        await store.put(makeRecord(id, { createdAt: id === 'old' ? 1000 : 9000 }), notes());
      await store.commitStep(stepOf('counted', ['old', 'wish', 'kept']));
      expect(await store.prune({ createdBefore: 2000, maxBytes: null })).toBe(1);
      expect(await deleted('counted')).toBe(0);
      expect((await store.delete({ ids: ['wish'] })).adapters).toMatchObject([
        { digest: 'counted', records: 1 },
      ]);
      expect(await deleted('counted')).toBe(1);
      // Gone while the step was under way, with rollouts that had not been stored yet.
      for (const origin of ['old', 'wish'])
        expect(await store.putRollout(makeRecord(`of ${origin}`), notes(), origin)).toBe(false);
      const ids = ['old', 'of old', 'wish', 'of wish', 'kept'];
      expect(await store.commitStep(stepOf('late', ids))).toEqual({ missing: ids.slice(0, 4) });
      expect(await deleted('late')).toBe(2);
      expect((await store.adapters()).find(({ digest }) => digest === 'late')?.trajectoryIds).toEqual([
        'kept',
      ]);
    });

    test('all of a key: what it asked and what it said of others, with the grades that came of it', async () => {
      for (const id of ['own', 'foreign', 'worse', 'judged'])
        await store.put(makeRecord(id), notes({ keyId: id === 'own' ? 'k1' : 'k2' }));
      await store.putRollout(makeRecord('r1'), notes({ keyId: 'k2', source: 'train' }), 'foreign');
      const say = (id: string, keyId: string, changes: object) =>
        store.addFeedback(feedback(id, { keyId, ...changes }));
      await say('foreign', 'k1', { goldAnswers: ['Paris'], comment: 'of my own' });
      await say('foreign', 'k1', { preferredOver: 'worse' });
      await say('foreign', 'k2', { reward: 1 });
      await say('judged', 'k1', { comment: 'hm' });
      await say('own', 'k2', { reward: 1 });
      const grade = (id: string, source: string) => ({ id, value: 1, source, rule: 'x' });
      await store.setGrades([
        grade('foreign', 'gold'),
        grade('r1', 'gold'),
        grade('worse', 'feedback'),
        grade('judged', 'judge'),
      ]);
      // About some answers: nothing beside them.
      expect(await store.delete({ keyId: 'k1', userKey: 'nobody' })).toMatchObject({ feedback: 0 });
      expect(await store.delete({ keyId: 'k1', createdBefore: 1000 })).toMatchObject({ feedback: 0 });
      const report = await store.delete({ keyId: 'k1' });
      expect(report).toMatchObject({ trajectories: ['own'], feedback: 4 });
      expect(await store.feedbackOf(['foreign', 'judged', 'worse'])).toMatchObject([
        { keyId: 'k2', reward: 1 },
      ]);
      const graded = (await store.list({}, newest)).filter((head) => head.grade !== null).map(({ id }) => id);
      expect(graded).toEqual(['judged']);
    });
  },
);
