// The store's tables, step by step. A step that was released is never changed.

import type { ColumnDefinitionBuilder, CreateTableBuilder } from 'kysely';
import type { ColumnTypes, Migration } from '../../storage/index.js';

const required = (column: ColumnDefinitionBuilder): ColumnDefinitionBuilder => column.notNull();
const key = (column: ColumnDefinitionBuilder): ColumnDefinitionBuilder => column.notNull().primaryKey();

function withSerial<Table extends string, Column extends string>(
  table: CreateTableBuilder<Table, Column>,
  { serial }: ColumnTypes,
) {
  return table.addColumn('sequence', serial, (column) =>
    serial === 'integer' ? column.primaryKey().autoIncrement() : column.primaryKey(),
  );
}

const records: Migration = {
  name: 'records',
  async up({ schema }, types) {
    const { blob, bigint, double } = types;
    await withSerial(schema.createTable('trajectories'), types)
      .addColumn('id', 'text', (column) => column.notNull().unique())
      .addColumn('created_at', bigint, required)
      .addColumn('stored_at', bigint, required)
      .addColumn('source', 'text', required)
      .addColumn('request_id', 'text')
      .addColumn('user_key', 'text')
      .addColumn('key_id', 'text')
      .addColumn('method', 'text', required)
      .addColumn('stop', 'text', required)
      .addColumn('question_digest', 'text', required)
      .addColumn('question', 'text', required)
      .addColumn('answer', 'text')
      .addColumn('adapter_version', 'text', required)
      .addColumn('model_digest', 'text', required)
      .addColumn('index_snapshot_id', 'text')
      .addColumn('group_id', 'text')
      .addColumn('temperature', double)
      .addColumn('tokens', bigint, required)
      .addColumn('sampled', bigint, required)
      .addColumn('bytes', bigint, required)
      .addColumn('audit_state', 'text', required)
      .addColumn('audit_faults', 'text')
      .addColumn('reward', double)
      .addColumn('reward_source', 'text')
      .addColumn('reward_rule', 'text')
      .addColumn('graded_at', bigint)
      .execute();
    for (const column of ['request_id', 'user_key', 'key_id', 'question_digest', 'created_at', 'audit_state'])
      await schema.createIndex(`trajectories_${column}`).on('trajectories').column(column).execute();
    await schema
      .createTable('trajectory_bodies')
      .addColumn('sequence', bigint, (column) =>
        column.primaryKey().references('trajectories.sequence').onDelete('cascade'),
      )
      .addColumn('token_ids', blob, required)
      .addColumn('origin', blob, required)
      .addColumn('loss_mask', blob, required)
      .addColumn('logprobs', blob, required)
      .addColumn('sampling_logprobs', blob)
      .addColumn('details', 'text', required)
      .execute();
  },
};

const feedback: Migration = {
  name: 'feedback',
  async up({ schema }, types) {
    const { bigint, double } = types;
    await withSerial(schema.createTable('feedback'), types)
      .addColumn('id', 'text', (column) => column.notNull().unique())
      .addColumn('trajectory_id', 'text', (column) =>
        column.notNull().references('trajectories.id').onDelete('cascade'),
      )
      .addColumn('created_at', bigint, required)
      .addColumn('key_id', 'text', required)
      .addColumn('role', 'text', required)
      .addColumn('idempotency_key', 'text')
      .addColumn('request_digest', 'text', required)
      .addColumn('reward', double)
      .addColumn('rating', double)
      .addColumn('gold_answers', 'text')
      .addColumn('preferred_over', 'text')
      .addColumn('comment', 'text')
      .addUniqueConstraint('feedback_idempotency', ['key_id', 'idempotency_key'])
      .execute();
    for (const column of ['trajectory_id', 'preferred_over'])
      await schema.createIndex(`feedback_${column}`).on('feedback').column(column).execute();
  },
};

const keys: Migration = {
  name: 'keys',
  async up({ schema }, { bigint }) {
    await schema
      .createTable('api_keys')
      .addColumn('id', 'text', key)
      .addColumn('name', 'text', required)
      .addColumn('digest', 'text', (column) => column.notNull().unique())
      .addColumn('scopes', 'text', required)
      .addColumn('created_at', bigint, required)
      .addColumn('revoked_at', bigint)
      .execute();
  },
};

const lineage: Migration = {
  name: 'lineage',
  async up({ schema }, { blob, bigint }) {
    await schema
      .createTable('batches')
      .addColumn('id', 'text', key)
      .addColumn('created_at', bigint, required)
      .addColumn('kind', 'text', required)
      .addColumn('payload', blob)
      .execute();
    await schema
      .createTable('batch_members')
      .addColumn('batch_id', 'text', (column) =>
        column.notNull().references('batches.id').onDelete('cascade'),
      )
      .addColumn('trajectory_id', 'text', required)
      .addPrimaryKeyConstraint('batch_members_key', ['batch_id', 'trajectory_id'])
      .execute();
    await schema
      .createTable('adapters')
      .addColumn('digest', 'text', key)
      .addColumn('parent_digest', 'text')
      .addColumn('created_at', bigint, required)
      .addColumn('receipt', 'text', required)
      .addColumn('deleted_members', bigint, (column) => column.notNull().defaultTo(0))
      .execute();
    await schema
      .createTable('adapter_members')
      .addColumn('adapter_digest', 'text', (column) =>
        column.notNull().references('adapters.digest').onDelete('cascade'),
      )
      .addColumn('trajectory_id', 'text', required)
      .addPrimaryKeyConstraint('adapter_members_key', ['adapter_digest', 'trajectory_id'])
      .execute();
    for (const table of ['batch_members', 'adapter_members'])
      await schema.createIndex(`${table}_trajectory`).on(table).column('trajectory_id').execute();
    await schema
      .createTable('documents')
      .addColumn('name', 'text', key)
      .addColumn('updated_at', bigint, required)
      .addColumn('value', 'text', required)
      .execute();
  },
};

const origins: Migration = {
  name: 'origins and deletions',
  async up({ schema }, { bigint }) {
    await schema.alterTable('trajectories').addColumn('origin_id', 'text').execute();
    for (const [table, column] of [
      ['trajectories', 'origin_id'],
      ['feedback', 'key_id'],
    ] as const)
      await schema.createIndex(`${table}_${column}`).on(table).column(column).execute();
    await schema
      .createTable('deletions')
      .addColumn('trajectory_id', 'text', key)
      .addColumn('deleted_at', bigint, required)
      .execute();
  },
};

/** What retention looks at: the oldest of a kind, and how much there is of all. */
const sources: Migration = {
  name: 'order of retention',
  async up({ schema }) {
    await schema
      .createIndex('trajectories_retention')
      .on('trajectories')
      .columns(['source', 'sequence', 'bytes'])
      .execute();
  },
};

/** Whether an answer met an outage of the search, without reading its record. Null in the rows that are there. */
const outages: Migration = {
  name: 'failed searches',
  async up({ schema }, { bigint }) {
    await schema.alterTable('trajectories').addColumn('failed_searches', bigint).execute();
  },
};

/** Batches for training are made in memory of the records as they are then; nothing ever stored one. */
const noBatches: Migration = {
  name: 'no stored batches',
  async up({ schema }) {
    for (const table of ['batch_members', 'batches']) await schema.dropTable(table).execute();
  },
};

/** Beside records also what was said of them: ids of either. */
const deletedFeedback: Migration = {
  name: 'deletions of feedback',
  async up({ schema }) {
    await schema.alterTable('deletions').renameColumn('trajectory_id', 'id').execute();
  },
};

export const MIGRATIONS: readonly Migration[] = [
  records,
  feedback,
  keys,
  lineage,
  origins,
  sources,
  outages,
  noBatches,
  deletedFeedback,
];
