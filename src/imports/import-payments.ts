import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import type { LineTarget, Outcome } from './lines/import-lines.ts'
import { idOfLine, keyOfLine, type LineKey } from './lines/line-keys.ts'
import type { DecimalsOf } from './lines/parse-payment.ts'
import { forEachYielding } from './lines/parsed-lines.ts'
import { type LinePayment, type PaymentBatch, readPayment, readPaymentBatch } from './lines/payment-batch.ts'
import type { Line } from './lines/read-lines.ts'
import { compareLines } from './sql/known-lines-repository.ts'
import { createPaymentImportRepository } from './sql/payment-import-repository.ts'

/**
 * Imports payments, in the form that search returns, into an account. The result is the same as if each line were parsed and stored by
 * itself, one after the other. A line whose hash stands in the stored row is unchanged; it is not parsed.
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
  const read = (line: Line) => readPayment(line, account.id, decimalsOf)
  /** For each batch that is not stored yet, the ids parsed so far. */
  const pendingIds = new Set<ReadonlySet<string>>()

  return {
    async prepare(lines) {
      const keys: LineKey[] = []
      await forEachYielding(lines, (line) => void keys.push(keyOfLine(line)))
      const earlier = [...pendingIds]
      const ids = new Set<string>()
      pendingIds.add(ids)
      const letters = await compareLines(knex, account.id, keys)
      const batch = await readPaymentBatch(lines, letters, ids, read)
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
    const outcomes: Outcome[] = lines.map(() => ({ kind: 'unchanged' }))
    for (const [place, error] of batch.faults) outcomes[place] = { kind: 'bad', error }
    const contested = findContested(lines, batch, written)
    const payments = new Map(batch.payments)
    await forEachYielding(contested, (place) => {
      const again = read(lines[place] as Line)
      if (again.ok) payments.set(place, again.item)
      else outcomes[place] = { kind: 'bad', error: again.error }
    })
    if (payments.size === 0) return outcomes
    const places = [...payments.keys()].toSorted((one, other) => one - other)
    const inOrder = places.map((place) => payments.get(place) as LinePayment)
    const stored = await repository.write(account, inOrder, batch.seemNew && contested.length === 0)
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
