import { SearchPaymentsResponseSchema } from '../../gen/payments/v1/payment_search_service_pb.js'
import { createPaymentToProto } from '../../src/api/services/payment-to-proto.ts'
import { runNamed } from '../../src/postgres/named-statements.ts'
import { raw, readRows } from '../../src/postgres/statement.ts'
import { NO_HEADS, paymentOfRow, readPaymentColumns } from '../../src/store/payment-row.ts'
import { compileJsonSerializer } from '../../src/transcoding/messages/json-serializer.ts'
import { type Figure, median } from '../report.ts'
import type { Subject } from './subject.ts'

const ROUNDS = 400
const WARM_ROUNDS = 100
const PAYMENTS = 50

/** The time of each step from the database to the text of an answer, for fifty payments with known ids. */
export async function measurePath(subject: Subject): Promise<Figure[]> {
  const { knex, account } = subject
  const ids = (await subject.search({ limit: PAYMENTS })).payments.map(({ id }) => id)
  const sql = `select p.* from unnest(?::uuid[]) known(id)
    cross join lateral (select ${readPaymentColumns.join(', ')} from payments where account_id = ? and id = known.id offset 0) p`
  const statement = raw(sql, [ids, account.id])
  const toJson = compileJsonSerializer(SearchPaymentsResponseSchema)
  const texts = async () => (await runNamed(knex, [statement], undefined))[0] ?? []
  const payments = async () => (await texts()).map((row) => paymentOfRow(row, NO_HEADS))
  const search = () => subject.search({ limit: PAYMENTS })
  const steps: Readonly<Record<string, () => Promise<unknown>>> = {
    'text of a named statement': texts,
    payments,
    'JSON of the payments': async () => toJson({ payments: (await payments()).map(createPaymentToProto()) }),
    'rows through Knex alone': async () => JSON.stringify(await readRows(knex, statement, undefined), bigintToText),
    'a whole search': search,
    'a whole search, to JSON': async () => toJson({ payments: (await search()).payments.map(createPaymentToProto()) }),
  }
  const times = new Map(Object.keys(steps).map((name) => [name, [] as number[]]))
  for (let round = -WARM_ROUNDS; round < ROUNDS; round++) {
    for (const [name, step] of Object.entries(steps)) {
      const startedMs = performance.now()
      await step()
      if (round >= 0) times.get(name)?.push(performance.now() - startedMs)
    }
  }
  return [...times].map(([name, each]) => ({ name: `path.${name}`, value: median(each), unit: 'ms' }))
}

const bigintToText = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)
