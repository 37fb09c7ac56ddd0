import type { TransactionMigration } from '../../src/postgres/migrations/migration.ts'
import { stoppedBy } from './lock-mode.ts'
import type { Observation, TableState } from './observe-step.ts'

/** What a step does against the rules of docs/internals/migrations.md, each as a sentence. */
export function judgeStep(step: TransactionMigration, seen: Observation): string[] {
  const removed = [...seen.before.values()].flatMap((table) => removedFrom(table, seen.after.get(table.name)))
  return [
    ...judgeLocks(seen),
    ...judgeTables(seen),
    ...(step.contract === undefined ? removed.map((what) => `${what}: older releases may use it; see contract`) : []),
    ...seen.statements.flatMap(judgeStatement),
  ]
}

function judgeLocks({ locks, read }: Observation): string[] {
  const stopping = [...locks].flatMap(([table, mode]) => {
    const stops = stoppedBy(mode)
    return stops === 'nothing' ? [] : [{ table, stops }]
  })
  const reads = stopping.filter(({ table }) => read.includes(table))
  return [
    ...(stopping.length > 1
      ? [
          `it locks ${stopping
            .map(({ table }) => table)
            .toSorted()
            .join(' and ')}: one table a step, or two waits add up`,
        ]
      : []),
    ...reads.map(({ table, stops }) => `it reads the rows of ${table} under a lock that stops ${stops}`),
  ]
}

function judgeTables({ before, after, written }: Observation): string[] {
  return [
    ...written.map((table) => `it writes rows of ${table}: let the service or a command do that in batches`),
    ...[...before.values()].flatMap((table) => {
      const now = after.get(table.name)
      return now === undefined ? [] : judgeTable(table, now)
    }),
  ]
}

function judgeTable(was: TableState, now: TableState): string[] {
  const isNew = (known: object) => (name: string) => !(name in known)
  const columns = Object.entries(now.columns).flatMap(([number, column]) => {
    const old = was.columns[number]
    const name = `${was.name}.${column.name}`
    if (column.isIdentity && old?.isIdentity !== true)
      return [`${name} becomes an identity column, which a sharded table refuses`]
    // an import of release 0016 stages its rows in a copy of the table that has no defaults
    if (old === undefined)
      return column.isRequired ? [`${name} is new and refuses null: older releases do not fill it`] : []
    if (old.name === 'account_id' && old.type !== column.type)
      return [`${name} gets another type, which a sharded table refuses`]
    return []
  })
  return [
    ...(was.file === now.file ? [] : [`it rewrites ${was.name}`]),
    ...Object.keys(now.indexes)
      .filter(isNew(was.indexes))
      .map((name) => `it builds ${name} on ${was.name} in a transaction: use indexes`),
    ...Object.entries(now.constraints)
      .filter(([name, { isValid }]) => isNew(was.constraints)(name) && isValid)
      .map(([name]) => `it adds ${name} to ${was.name} without NOT VALID`),
    ...columns,
  ]
}

/** What of a table is not as it was. */
function removedFrom(was: TableState, now: TableState | undefined): string[] {
  if (now === undefined) return [`the table ${was.name} is dropped`]
  const columns = Object.entries(was.columns).flatMap(([number, old]) => {
    const column = now.columns[number]
    const name = `${was.name}.${old.name}`
    if (column === undefined) return [`${name} is dropped`]
    return [
      ...(column.name === old.name ? [] : [`${name} is renamed to ${column.name}`]),
      ...(column.type === old.type ? [] : [`${name} gets the type ${column.type}`]),
      ...(column.isRequired && !old.isRequired ? [`${name} refuses null`] : []),
      ...(old.hasDefault && !column.hasDefault ? [`${name} loses its default`] : []),
    ]
  })
  const gone = (before: object, after: object) => Object.keys(before).filter((name) => !(name in after))
  return [
    ...(was.name === now.name ? [] : [`the table ${was.name} is renamed to ${now.name}`]),
    ...columns,
    ...[...new Set([...gone(was.indexes, now.indexes), ...gone(was.constraints, now.constraints)])].map(
      (name) => `${name} is dropped`,
    ),
  ]
}

/** What Citus refuses. */
function judgeStatement(sql: string): string[] {
  const isTwo = /;\s*\S/.test(sql)
  const isCrowded = /\badd constraint\b/i.test(sql) && /,\s*(?:add|alter|drop|validate)\b/i.test(sql)
  return [
    ...(isTwo ? [`"${sql}" is more than one statement a call`] : []),
    ...(isCrowded ? [`"${sql}" adds a constraint beside something else: give it a statement of its own`] : []),
  ]
}
