import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import type { LineTarget, Outcome } from './import-lines.ts'
import { idOfLine, writeLineKeys } from './line-keys.ts'
import type { LinePayment } from './new-payments.ts'
import type { DecimalsOf } from './parse-payment.ts'
import { forEachInTurns } from './parsed-lines.ts'
import { type PaymentBatch, readPayment, readPaymentBatch } from './payment-batch.ts'
import type { Line } from './read-lines.ts'
import { compareLines } from './sql/known-lines-repository.ts'
import { storeNewPayments } from './sql/new-payments-repository.ts'
import { createPaymentImportRepository } from './sql/payment-import-repository.ts'

const UNCHANGED: Outcome = { kind: 'unchanged' }
const WRITTEN: Outcome = { kind: 'written' }

/**
 * Imports payments, in the form that search returns, into an account. The result is the same as if each line were parsed and stored by
 * itself, one after the other. There are three paths:
 *
 * - a line whose hash stands in the stored row is unchanged; it is not parsed
 * - when all other lines of a batch have new ids, they are copied straight into the table
 * - otherwise each payment is compared with the stored one
 *
 * @param decimalsOf - the decimals of a currency, for the check against the largest amount; without it of none is known
 */
export function importPayments(
  knex: Knex,
  account: Account,
  now = () => new Date(),
  decimalsOf?: DecimalsOf,
): LineTarget {
  const repository = createPaymentImportRepository(knex, now)
  /** For each batch that is not stored yet, the ids parsed so far. */
  const pendingIds = new Set<ReadonlySet<string>>()

  return {
    async prepare(lines) {
      const keys = writeLineKeys(lines.length)
      await forEachInTurns(lines, (line) => keys.add(line))
      const earlier = [...pendingIds]
      const ids = new Set<string>()
      pendingIds.add(ids)
      const letters = await compareLines(knex, account.id, keys.keys())
      const batch = await readPaymentBatch(lines, { letters, accountId: account.id, ids, decimalsOf })
      return {
        async store() {
          const outcomes = await store(lines, batch, [ids, ...earlier])
          pendingIds.delete(ids)
          return outcomes
        },
      }
    },
  }

  /** @param written - ids that this import may have written after the lines were compared with the stored rows */
  async function store(lines: readonly Line[], batch: PaymentBatch, written: readonly ReadonlySet<string>[]) {
    const contested = findContested(lines, batch, written)
    const { newPayments } = batch
    if (contested.length === 0 && newPayments !== undefined) {
      if (newPayments.ids.length === 0 || (await storeNewPayments(knex, newPayments, now())))
        return outcomesOf(lines, batch, WRITTEN)
    }
    return compareAndStore(lines, batch, contested)
  }

  async function compareAndStore(lines: readonly Line[], batch: PaymentBatch, contested: readonly number[]) {
    const outcomes = outcomesOf(lines, batch, UNCHANGED)
    const places: number[] = []
    const payments: LinePayment[] = []
    const all = [...batch.read, ...contested].toSorted((one, other) => one - other)
    await forEachInTurns(all, (place) => {
      if (batch.faults.has(place)) return
      const before = batch.payments.get(place)
      const read =
        before === undefined ? readPayment(lines[place] as Line, decimalsOf) : ({ ok: true, item: before } as const)
      if (!read.ok) {
        outcomes[place] = { kind: 'bad', error: read.error }
        return
      }
      places.push(place)
      payments.push(read.item)
    })
    const stored = await repository.write(account, payments)
    for (const [at, place] of places.entries()) outcomes[place] = stored[at] as Outcome
    return outcomes
  }
}

/** Unchanged lines whose payment another line of this file may have changed since. */
function findContested(lines: readonly Line[], { known }: PaymentBatch, written: readonly ReadonlySet<string>[]) {
  const some = written.filter(({ size }) => size > 0)
  if (some.length === 0) return []
  return known.filter((place) => {
    const id = idOfLine(lines[place]?.content as Buffer)
    return id === undefined || some.some((ids) => ids.has(id))
  })
}

/** @param ofRead - the outcome of lines that were parsed without a fault */
function outcomesOf(lines: readonly Line[], { read, faults }: PaymentBatch, ofRead: Outcome): Outcome[] {
  const outcomes = lines.map(() => UNCHANGED)
  for (const place of read) {
    const error = faults.get(place)
    outcomes[place] = error === undefined ? ofRead : { kind: 'bad', error }
  }
  return outcomes
}
