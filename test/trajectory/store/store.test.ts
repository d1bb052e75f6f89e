// The store's contract, on both databases.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConflictError, InvalidInputError, NotFoundError } from '../../../src/errors.js';
import type { StorageSettings } from '../../../src/storage/index.js';
import {
  exportLine,
  exportText,
  importLine,
  openTrajectoryStore,
  type TrajectoryRecord,
  type TrajectoryStore,
} from '../../../src/trajectory/index.js';
import type { StepInput } from '../../../src/trajectory/store/types.js';
import { type PostgresServer, startPostgres } from '../../support/postgres-server.js';
import { feedback, MODEL, makeRecord, notes, TOKENIZER } from './support.js';

let folder: string;
let postgres: PostgresServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'searchloop-store-'));
  postgres = await startPostgres();
});
afterAll(async () => {
  await postgres?.close();
  rmSync(folder, { recursive: true, force: true });
});

let count = 0;
const settings: Record<StorageSettings['kind'], () => StorageSettings> = {
  sqlite: () => ({ kind: 'sqlite', path: join(folder, `${count++}`, 'store.db') }),
  postgres: () => ({ kind: 'postgres', url: postgres.createDatabase(`store${count++}`) }),
};

const stepOf = (digest: string, trajectoryIds: readonly string[]): StepInput => ({
  adapter: { digest, parentDigest: null, receipt: null },
  trajectoryIds,
  documents: {},
});

describe.each(['sqlite', 'postgres'] as const)('%s', (kind) => {
  let storage: StorageSettings;
  let store: TrajectoryStore;
  beforeAll(() => {
    storage = settings[kind]();
    store = openTrajectoryStore({ storage, retry: false });
  });
  afterEach(() => store.delete({}));
  afterAll(() => store.close());

  const newest = { limit: 100, order: 'newest' } as const;

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
    expect(await store.readDocumentsUnder('under.a.')).toEqual({ 'under.a.1': { at: 1 }, 'under.a.2': [2] });
    await store.putDocuments({ 'under.a.1': null });
    expect(await store.readDocumentsUnder('under.')).toEqual({ 'under.a.2': [2] });
    expect(await store.readDocumentsUnder('under.c')).toEqual({});
  });

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
    expect((await store.adapters()).find(({ digest }) => digest === 'late')?.trajectoryIds).toEqual(['kept']);
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
    await store.addFeedback(feedback('a', { role: 'admin', goldAnswers: ['Paris'], idempotencyKey: 'mine' }));
    const [stored, said] = [await store.get('a'), await store.feedbackOf(['a'])];
    const text = exportText(exportLine(stored!, said));
    const bring = async (into: TrajectoryStore) => {
      const { record, notes: about, feedback: entries } = importLine(text, 'line 1');
      await into.put(record, { ...about, source: 'import' });
      return Promise.all(entries.map((entry) => into.importFeedback(entry)));
    };
    expect(await bring(store)).toMatchObject([{ repeated: true }]);
    expect(await store.feedbackOf(['a'])).toEqual(said);
    const elsewhere = openTrajectoryStore({ storage: settings[kind](), retry: false });
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
    const second = openTrajectoryStore({ storage, retry: false });
    try {
      await Promise.all([store.put(makeRecord('b'), notes()), second.put(makeRecord('c'), notes())]);
      expect((await second.list({}, newest)).map(({ id }) => id).sort()).toEqual(['a', 'b', 'c']);
    } finally {
      await second.close();
    }
  });
});
