// The store's contract, on both databases.

import { InvalidInputError, NotFoundError } from '../../../src/errors.js';
import {
  exportLine,
  exportText,
  importLine,
  openTrajectoryStore,
  type TrajectoryRecord,
  type TrajectoryStore,
} from '../../../src/trajectory/index.js';
import { type OpenedStore, onBothDatabases } from './both-databases.js';
import { feedback, MODEL, makeRecord, notes, TOKENIZER } from './support.js';

let opened: OpenedStore;
let store: TrajectoryStore;
const newest = { limit: 100, order: 'newest' } as const;

onBothDatabases(
  'store',
  (one) => {
    opened = one;
    store = one.store;
  },
  () => {
    test('a record comes back as it was stored', async () => {
      const record = makeRecord('a', { question: 'what is \0 in "C"?\ud83d\ude00' });
      const given = notes({
        userKey: 'u1',
        keyId: 'k1',
        requestId: 'r1',
        askedToStore: true,
        source: 'explore',
      });
      expect(await store.put(record, given)).toBe(true);
      const back = await store.get('a');
      expect(back?.record).toEqual(record);
      expect(back?.notes).toEqual(given);
      expect(back?.head).toMatchObject({
        tokens: record.tokenIds.length,
        temperature: 0,
        adapterVersion: 'base',
      });
      expect(back?.head.question).toContain('what is \ufffd');
      expect(await store.get('b')).toBeNull();
    });

    test('log-probabilities of both distributions, unaligned arrays and odd origins survive', async () => {
      const base = makeRecord('a');
      const odd: TrajectoryRecord = {
        ...base,
        logprobs: base.logprobs.slice(1),
        samplingLogprobs: base.samplingLogprobs.map(() => -0.5),
        lossMask: [],
      };
      await store.put(odd, notes());
      expect((await store.get('a'))?.record).toEqual(odd);
    });

    test('an id is stored once', async () => {
      expect(await store.put(makeRecord('a', { answer: 'Paris' }), notes())).toBe(true);
      expect(await store.put(makeRecord('a', { answer: 'London' }), notes())).toBe(false);
      expect((await store.get('a'))?.record.answer).toBe('Paris');
    });

    test('lists by page and filter', async () => {
      await Promise.all(
        Array.from({ length: 5 }, (_, at) =>
          store.put(
            makeRecord(`r${at}`, { createdAt: at * 1000, question: at < 2 ? 'one?' : 'two?' }),
            notes({ userKey: at % 2 === 0 ? 'even' : 'odd' }),
          ),
        ),
      );
      const ids = async (...args: Parameters<TrajectoryStore['list']>) =>
        (await store.list(...args)).map(({ id }) => id);
      expect(await ids({}, newest)).toEqual(['r4', 'r3', 'r2', 'r1', 'r0']);
      const first = await store.list({}, { limit: 2, order: 'oldest' });
      expect(first.map(({ id }) => id)).toEqual(['r0', 'r1']);
      expect(await ids({}, { limit: 2, order: 'oldest', cursor: first[1]?.sequence ?? 0 })).toEqual([
        'r2',
        'r3',
      ]);
      expect(await ids({ userKey: 'odd' }, newest)).toEqual(['r3', 'r1']);
      expect(await ids({ createdAfter: 1000, createdBefore: 4000 }, newest)).toEqual(['r3', 'r2']);
      expect(await ids({ ids: ['r0', 'nobody'] }, newest)).toEqual(['r0']);
      expect(await ids({ ids: [] }, newest)).toEqual([]);
      const digest = first[0]?.questionDigest ?? '';
      expect(await ids({ questionDigest: digest }, newest)).toEqual(['r1', 'r0']);
      expect((await store.read(['r3', 'nobody', 'r0'])).map(({ record }) => record.id)).toEqual(['r3', 'r0']);
    });

    test('records are audited as they are written, and again on demand', async () => {
      await store.put(makeRecord('early'), notes());
      await store.useAuditor({ modelDigest: MODEL, tokenizer: TOKENIZER });
      const sound = makeRecord('sound');
      const broken = { ...makeRecord('broken'), lossMask: sound.lossMask.map(() => 1 as const) };
      const empty = {
        ...makeRecord('empty'),
        tokenIds: [],
        origin: [],
        lossMask: [],
        logprobs: [],
        samplingLogprobs: [],
      };
      const foreign = { ...makeRecord('foreign'), modelDigest: 'another' };
      await Promise.all([sound, broken, empty, foreign].map((record) => store.put(record, notes())));
      const states = async () =>
        Object.fromEntries((await store.list({}, newest)).map(({ id, auditState }) => [id, auditState]));
      expect(await states()).toEqual({
        early: 'unchecked',
        sound: 'clean',
        broken: 'quarantined',
        empty: 'quarantined',
        foreign: 'unchecked',
      });
      const [head] = await store.list({ ids: ['broken'] }, newest);
      expect(head?.auditFaults[0]).toMatchObject({ rule: 'mask' });
      const progress: number[] = [];
      const summary = await store.audit({}, { onProgress: (checked) => progress.push(checked) });
      expect(summary).toEqual({ checked: 5, clean: 2, quarantined: ['broken', 'empty'], skipped: 1 });
      expect(progress.at(-1)).toBe(5);
      expect((await states()).early).toBe('clean');
      expect(await store.counts()).toMatchObject({
        trajectories: 5,
        quarantined: 2,
        unchecked: 1,
        feedback: 0,
      });
    });

    test('a record without a token of the policy is quarantined, not trained on', async () => {
      await store.useAuditor({ modelDigest: MODEL, tokenizer: TOKENIZER });
      const base = makeRecord('a');
      const prompt = base.origin.filter((item) => item === 'prompt').length;
      const cut = <T>(items: readonly T[]): T[] => items.slice(0, prompt);
      const silent: TrajectoryRecord = {
        ...base,
        tokenIds: cut(base.tokenIds),
        origin: cut(base.origin),
        lossMask: cut(base.lossMask),
        logprobs: cut(base.logprobs),
        samplingLogprobs: cut(base.samplingLogprobs),
        versions: [{ start: 0, end: prompt, adapterVersion: 'base' }],
        turnStarts: [],
        searches: [],
        observations: [],
        answer: null,
        stop: 'cancelled',
        validActions: 0,
      };
      await store.put(silent, notes());
      const [head] = await store.list({}, newest);
      expect(head?.auditFaults).toEqual([
        { rule: 'sampled', message: 'expected at least one token of the policy, got none' },
      ]);
    });

    test('feedback is kept with its history, and repeated by its key only', async () => {
      await store.put(makeRecord('a'), notes(), feedback('a', { role: 'request', goldAnswers: ['Paris'] }));
      const first = await store.addFeedback(
        feedback('a', { reward: 1, idempotencyKey: 'once', comment: 'good \0 one' }),
      );
      const again = await store.addFeedback(
        feedback('a', { reward: 1, idempotencyKey: 'once', comment: 'good \0 one' }),
      );
      expect(again).toEqual({ entry: first.entry, repeated: true });
      await expect(store.addFeedback(feedback('a', { reward: 0, idempotencyKey: 'once' }))).rejects.toThrow(
        InvalidInputError,
      );
      const other = await store.addFeedback(
        feedback('a', { reward: 0, idempotencyKey: 'once', keyId: 'key-2' }),
      );
      expect(other.repeated).toBe(false);
      await expect(store.addFeedback(feedback('nobody', { reward: 0 }))).rejects.toThrow(NotFoundError);
      const entries = await store.feedbackOf(['a']);
      expect(entries.map(({ role, reward, goldAnswers }) => [role, reward, goldAnswers])).toEqual([
        ['request', null, ['Paris']],
        ['feedback', 1, null],
        ['feedback', 0, null],
      ]);
      expect(entries[1]?.comment).toBe('good \0 one');
      expect(await store.feedbackSince(entries[0]?.sequence ?? 0, 1)).toEqual([entries[1]]);
    });

    test('a preference names another answer to the same question', async () => {
      await store.put(makeRecord('a'), notes());
      await store.put(makeRecord('b', { answer: 'Lyon' }), notes());
      await store.put(makeRecord('c', { question: 'another?' }), notes());
      const prefer = (over: string) => store.addFeedback(feedback('a', { preferredOver: over }));
      await expect(prefer('c')).rejects.toThrow('same question');
      await expect(prefer('a')).rejects.toThrow('another answer');
      await expect(prefer('nobody')).rejects.toThrow(NotFoundError);
      await prefer('b');
      expect((await store.list({ labelled: true }, newest)).map(({ id }) => id)).toEqual(['b', 'a']);
      expect((await store.list({ labelled: false }, newest)).map(({ id }) => id)).toEqual(['c']);
      // A comment alone is no label.
      await store.addFeedback(feedback('c', { comment: 'hm' }));
      expect(await store.list({ labelled: true, ids: ['c'] }, newest)).toEqual([]);
    });

    test('grades', async () => {
      await store.put(makeRecord('a'), notes());
      const grade = { value: 0.5, source: 'gold', rule: 'outcome' };
      expect(
        await store.setGrades([
          { id: 'a', ...grade },
          { id: 'nobody', ...grade },
        ]),
      ).toBe(1);
      expect((await store.get('a'))?.head.grade).toEqual({ ...grade, gradedAt: expect.any(Number) });
    });

    test('keys', async () => {
      await store.createKey({ id: 'k1', name: 'phone', digest: 'd1', scopes: ['ask', 'feedback'] });
      await store.revokeKey('k1');
      await store.revokeKey('k1');
      await expect(store.revokeKey('k2')).rejects.toThrow(NotFoundError);
      expect(await store.keys()).toEqual([
        {
          id: 'k1',
          name: 'phone',
          digest: 'd1',
          scopes: ['ask', 'feedback'],
          createdAt: expect.any(Number),
          revokedAt: expect.any(Number),
        },
      ]);
    });

    test('documents are found by the beginning of their names, in small letters as they are', async () => {
      await store.putDocuments({ 'under.a.1': { at: 1 }, 'under.a.2': [2], 'Under.A.3': 3, 'under.b': null });
      expect(await store.readDocumentsUnder('under.a.')).toEqual({
        'under.a.1': { at: 1 },
        'under.a.2': [2],
      });
      await store.putDocuments({ 'under.a.1': null });
      expect(await store.readDocumentsUnder('under.')).toEqual({ 'under.a.2': [2] });
      expect(await store.readDocumentsUnder('under.c')).toEqual({});
    });

    test('an id with a NUL is no answer, and other texts may hold one', async () => {
      await store.put(
        makeRecord('a', { question: 'one \0?' }),
        notes({ userKey: 'u\0', keyId: 'k\0', requestId: 'r\0' }),
      );
      await expect(store.addFeedback(feedback('a\0', { reward: 1 }))).rejects.toThrow(NotFoundError);
      await expect(store.addFeedback(feedback('a', { preferredOver: 'b\0' }))).rejects.toThrow(NotFoundError);
      const { entry } = await store.addFeedback(feedback('a', { goldAnswers: ['x\0'], comment: '\0' }));
      expect(await store.feedbackOf(['a'])).toEqual([entry]);
      expect(entry).toMatchObject({ goldAnswers: ['x\0'], comment: '\0' });
      expect((await store.get('a'))?.head).toMatchObject({ userKey: 'u\ufffd', keyId: 'k\ufffd' });
    });

    test('an export that comes back adds no word; elsewhere it is nobody\u2019s of rank, once', async () => {
      await store.put(makeRecord('a'), notes());
      await store.addFeedback(
        feedback('a', { role: 'admin', goldAnswers: ['Paris'], idempotencyKey: 'mine' }),
      );
      const [stored, said] = [await store.get('a'), await store.feedbackOf(['a'])];
      const text = exportText(exportLine(stored!, said));
      const bring = async (into: TrajectoryStore) => {
        const { record, notes: about, feedback: entries } = importLine(text, 'line 1');
        await into.put(record, { ...about, source: 'import' });
        return Promise.all(entries.map((entry) => into.importFeedback(entry)));
      };
      expect(await bring(store)).toMatchObject([{ repeated: true }]);
      expect(await store.feedbackOf(['a'])).toEqual(said);
      const elsewhere = openTrajectoryStore({ storage: opened.another(), retry: false });
      try {
        expect(await bring(elsewhere)).toMatchObject([{ repeated: false }]);
        expect(await bring(elsewhere)).toMatchObject([{ repeated: true }]);
        const [entry] = said;
        expect(await elsewhere.feedbackOf(['a'])).toMatchObject([
          { id: entry?.id, createdAt: entry?.createdAt, role: 'import', goldAnswers: ['Paris'] },
        ]);
      } finally {
        await elsewhere.close();
      }
    });

    test('one write at fault does not cost the others', async () => {
      const results = await Promise.allSettled([
        store.put(makeRecord('a'), notes()),
        // No database takes this for a number.
        store.setGrades([{ id: 'a', value: {} as number, source: 'x', rule: 'x' }]),
        store.put(makeRecord('b'), notes()),
      ]);
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect((await store.list({}, newest)).map(({ id }) => id)).toEqual(['b', 'a']);
    });

    test('what was stored is there after the store is opened anew, and by two at once', async () => {
      await store.put(makeRecord('a'), notes());
      const second = openTrajectoryStore({ storage: opened.storage, retry: false });
      try {
        await Promise.all([store.put(makeRecord('b'), notes()), second.put(makeRecord('c'), notes())]);
        expect((await second.list({}, newest)).map(({ id }) => id).sort()).toEqual(['a', 'b', 'c']);
      } finally {
        await second.close();
      }
    });
  },
);
