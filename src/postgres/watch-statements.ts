import type { Knex } from 'knex'
import type { Meter, Span, Telemetry } from '../domain/telemetry/telemetry.ts'
import { classifyDatabaseError } from './database-error.ts'

/** Watches what connections do. */
export interface StatementWatch {
  /** A statement was given to a connection. @returns called when the server is ready again; `error`: its SQLSTATE */
  readonly begin: (server: string, sql: string) => (error?: string) => void
  /** A connection could not be opened, or was lost. */
  readonly failed: (error: Error) => void
}

const OPERATION_SECONDS = {
  name: 'db_client_operation_duration_seconds',
  help: 'Duration of statements, from when a connection has them until the server is ready for the next one.',
  labels: ['db_system_name', 'db_operation_name', 'server_address'],
  buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
}

const ERRORS = { name: 'waybill_database_errors_total', help: 'Errors of the database, by class.', labels: ['class'] }

const OPERATIONS = /^\s*(select|insert|update|delete|with|begin|commit|rollback|copy|set|savepoint|release)\b/i

/** Measures and traces statements; undefined where nothing is. Spans have the first word alone: texts say nothing to operators, and values are data. */
export function watchStatements({ meter, tracer }: Telemetry): StatementWatch | undefined {
  if (meter === undefined && tracer === undefined) return undefined
  const seconds = meter?.histogram(OPERATION_SECONDS)
  const countError = meter?.counter(ERRORS)
  const count = (error: Error) => countError?.({ class: classifyDatabaseError(error) })
  return {
    begin(server, sql) {
      const startMs = performance.now()
      const operation = OPERATIONS.exec(sql)?.[1]?.toUpperCase() ?? 'OTHER'
      const span: Span | undefined = tracer?.begin(operation, 'CLIENT', {
        'db.system.name': 'postgresql',
        'db.operation.name': operation,
        'server.address': server,
      })
      return (error) => {
        const labels = { db_system_name: 'postgresql', db_operation_name: operation, server_address: server }
        seconds?.(labels, (performance.now() - startMs) / 1_000)
        if (error !== undefined) count(Object.assign(new Error(error), { code: error }))
        span?.end(error)
      }
    },
    failed: count,
  }
}

/** The part of Knex's pool that tells how busy it is; Knex's types leave it out. */
interface Pool {
  readonly max: number
  numUsed(): number
  numFree(): number
  numPendingAcquires(): number
}

const POOLS = [
  {
    name: 'db_client_connection_count',
    help: 'Connections to the database.',
    labels: ['db_client_connection_pool_name', 'db_client_connection_state'],
  },
  {
    name: 'db_client_connection_pending_requests',
    help: 'Work that waits for a connection.',
    labels: ['db_client_connection_pool_name'],
  },
  { name: 'db_client_connection_max', help: 'Most connections.', labels: ['db_client_connection_pool_name'] },
] as const

/** Shows how busy pools are. @param pools - by name */
export function measurePools(meter: Meter, pools: Readonly<Record<string, Knex>>): void {
  meter.observe(POOLS, () =>
    Object.entries(pools).flatMap(([name, { client }]) => {
      const { pool } = client as { pool: Pool }
      const label = { db_client_connection_pool_name: name }
      const count = (state: string, value: number) =>
        ['db_client_connection_count', value, { ...label, db_client_connection_state: state }] as const
      return [
        count('used', pool.numUsed()),
        count('idle', pool.numFree()),
        ['db_client_connection_pending_requests', pool.numPendingAcquires(), label],
        ['db_client_connection_max', pool.max, label],
      ] as const
    }),
  )
}
