import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { Knex } from 'knex'
import type { Account } from '../../../src/domain/account.ts'
import { importPayments } from '../../../src/imports/import-payments.ts'
import { importLines } from '../../../src/imports/lines/import-lines.ts'
import { classifyDatabaseError } from '../../../src/postgres/database-error.ts'

/** Imports new and changed payments into an account until it is stopped. */
export interface Writer {
  /** Waits until so many more batches are stored. */
  written(batches: number): Promise<void>
  /** @returns how many payments are stored */
  stop(): Promise<number>
}

export function writeUntil(knex: Knex, account: Account): Writer {
  const ended = new AbortController()
  const reported = new EventTarget()
  const ids: string[] = []
  const work = (async () => {
    for (let version = 1; !ended.signal.aborted; version++) {
      const added = [randomUUID(), randomUUID()]
      const changed = ids.slice(-3)
      const lines = [...added, ...changed].map((id) => JSON.stringify(lineOf(id, version)))
      const text = `${lines.join('\n')}\n`
      await importText(knex, account, text)
      ids.push(...added)
      reported.dispatchEvent(new Event('batch'))
    }
  })()
  return {
    async written(more) {
      for (let left = more; left > 0; left--) await Promise.race([once(reported, 'batch'), work])
    },
    async stop() {
      ended.abort()
      await work
      return ids.length
    },
  }
}

/** An import that fails because of what happens to the cluster is tried again, as its caller would. */
async function importText(knex: Knex, account: Account, text: string): Promise<void> {
  for (;;) {
    try {
      const { bad } = await importLines(Readable.from([Buffer.from(text)]), importPayments(knex, account))
      if (bad > 0) throw new Error(`${bad} lines were refused`)
      return
    } catch (error) {
      if (!['serialization', 'timeout', 'unavailable'].includes(classifyDatabaseError(error))) throw error
    }
  }
}

function lineOf(id: string, version: number) {
  return {
    id,
    timestamp: '2026-11-01T12:00:00Z',
    updatedAt: new Date(Date.UTC(2026, 10, 2) + version * 1_000).toISOString(),
    amount: String(version),
    currency: 'USDC-BASE',
    network: 'BASE',
    status: version % 2 === 0 ? 'CONFIRMED' : 'PENDING',
  }
}
