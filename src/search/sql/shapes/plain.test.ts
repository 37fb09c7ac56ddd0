import { describe, expect, test } from 'vitest'
import { addressToBytes, parseAddress } from '../../../domain/address.ts'
import type { Statement } from '../../../postgres/statement.ts'
import type { FilterValues } from '../../filter/search-fields.ts'
import { filterFields } from '../../filter/search-fields.ts'
import type { PageQuery } from '../../page/page-query.ts'
import { plainStatement } from './plain.ts'

const ID = '0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11'
const AT = '2026-03-01T00:00:00.000Z'

const page = (filter: FilterValues, query: Partial<PageQuery> = {}): Statement =>
  plainStatement({
    query: { sortBy: 'date', sortOrder: 'desc', rows: 21, ...query, filter: { ...filter, accountId: 7 } },
    columns: ['id'],
  })

const after = (keys: readonly (string | number | null)[]) =>
  ({ keys, id: ID, inclusive: false, direction: 'forward' }) as const

function wallet(text: string) {
  const parsed = parseAddress(text)
  if (!parsed.ok) throw new Error(parsed.detail)
  return parsed.address
}

test('the first page walks the keys and joins the rows by primary key', () => {
  expect(page({})).toEqual({
    sql: `with page as (
select *, false as cut from (
select timestamp, id from payments
where account_id = ?
order by timestamp desc, id desc
limit ?
) walked
)
select p.id, coalesce(page.cut, false) or account.cut as page_cut,
  account.last_change, account.seq as statistics_seq
from (select (select last_change from account_changes where account_id = ?) as last_change,
  (select max(seq) from payment_statistics where account_id = ?) as seq,
  false as cut) account
left join (select * from page order by timestamp desc, id desc limit ?) page on true
left join payments p on p.account_id = ? and p.id = page.id
order by page.timestamp desc, page.id desc`,
    bindings: [7, 21, 7, 7, 21, 7],
  })
})

test('a cursor bounds the walk by a row value, going backward against the order', () => {
  const backward = { ...after([3, AT]), direction: 'backward' } as const
  const { sql, bindings } = page({}, { sortBy: 'status', position: backward })
  expect(sql).toContain(`where account_id = ? and (status, timestamp, id) > (?::smallint, ?::timestamptz, ?::uuid)
order by status asc, timestamp asc, id asc`)
  expect(bindings).toEqual([7, 3, AT, ID, 21, 7, 7, 21, 7])
})

test('an order whose key can be null is two walks, over the unknown and the known keys', () => {
  const { sql, bindings } = page({}, { sortBy: 'amount', position: after(['1.5']) })
  expect(sql).toContain('where account_id = ? and amount_in_usd is null\n')
  expect(sql).toContain(
    'where account_id = ? and amount_in_usd is not null and (amount_in_usd, id) < (?::numeric, ?::uuid)\n',
  )
  expect(bindings).toEqual([7, 21, 7, '1.5', ID, 21, 21, 7, 7, 21, 7])
})

test('after an unknown key in a descending order only unknown keys remain, and an amount filter excludes them', () => {
  const unknown = page({}, { sortBy: 'amount', position: after([null]) })
  expect(unknown.sql).toContain('where account_id = ? and amount_in_usd is null and (id) < (?::uuid)')
  expect(unknown.sql).not.toContain('union')
  const ranged = page({ minAmount: '1' }, { sortBy: 'amount' })
  expect(ranged.sql).toContain('amount_in_usd >= ?::numeric and amount_in_usd is not null')
  expect(ranged.sql).not.toContain('union')
})

test('a wallet is walked as payer and, where it is not the payer, as payee', () => {
  const w = wallet('0x70997970c51812dc3a010c7d01b50e0d17dc79c8')
  const { sql, bindings } = page({ walletAddress: [w] })
  expect(sql).toContain('where account_id = ? and payer = ?::bytea\n')
  expect(sql).toContain('where account_id = ? and payee = ?::bytea and (payer is null or payer <> all(?::bytea[]))\n')
  expect(bindings).toEqual([7, addressToBytes(w), 21, 7, addressToBytes(w), [addressToBytes(w)], 21, 21, 7, 7, 21, 7])
})

test('an identifier is looked up first, and the other filters are asked of what it names', () => {
  const { sql, bindings } = page({ txHash: [`0x${'ab'.repeat(32)}`], status: ['FAILED'] })
  expect(sql).toMatch(
    /^with named as materialized \(\nselect id, .* from payments\nwhere account_id = \? and \(tx_hash = \?::bytea or source_tx_hash = \?::bytea or \(refunds <> '\[\]' and refunds @@ \?::jsonpath\)\)\n\),/,
  )
  expect(sql).toContain('select timestamp, id from named\nwhere status = ?::smallint\n')
  const refund = `$[*].txHash == "0x${'ab'.repeat(32)}"`
  expect(bindings).toEqual([7, Buffer.alloc(32, 0xab), Buffer.alloc(32, 0xab), refund, 5, 21, 7, 7, 21, 7])
})

test('a text is looked up in the columns of all its meanings', () => {
  const id = '42424242-4242-4242-8242-424242424242'
  const text = page({
    q: [
      { as: 'id', value: id },
      { as: 'reference', value: 'A' },
    ],
  })
  expect(text.sql).toContain('from payments\nwhere account_id = ? and (id = ?::uuid or reference = ?::text)\n),')
  expect(text.bindings).toEqual([7, id, 'A', 21, 7, 7, 21, 7])
})

test('a text that means a wallet is walked as payer and as payee', () => {
  const w = wallet(`0x${'42'.repeat(20)}`)
  const { bindings, ...asFilter } = page({ walletAddress: [w] })
  expect(page({ q: [{ as: 'walletAddress', value: w }] })).toEqual({ ...asFilter, bindings })
})

test('a payment currency is asked for by symbol even where one id is meant', () => {
  expect(page({ currency: [{ of: 'payment', symbol: 'USDC', id: 'USDC-BASE' }] }).sql).toContain(
    'currency_symbol = ?::text and currency = ?::text',
  )
  expect(page({ currency: [{ of: 'invoice', symbol: 'EUR', id: 'EUR' }] }, { sortBy: 'amount' }).sql).toContain(
    'where account_id = ? and invoice_currency = ?::text and invoice_amount is null',
  )
})

describe('values never enter the text', () => {
  const marked = "'; drop table payments; --"
  const everything: Required<FilterValues> = {
    fromDate: 86_400_000,
    toDate: 172_800_000,
    minAmount: '4242',
    maxAmount: '4243',
    currency: [
      { of: 'payment', symbol: marked, id: marked },
      { of: 'invoice', symbol: marked },
    ],
    paymentCurrency: [{ of: 'payment', symbol: marked }],
    invoiceCurrency: [{ of: 'invoice', symbol: marked, id: marked }],
    status: ['FAILED'],
    type: ['DIRECT'],
    payer: [wallet(`0x${'42'.repeat(20)}`)],
    payee: [wallet(`0x${'42'.repeat(20)}`)],
    walletAddress: [wallet(`0x${'42'.repeat(20)}`)],
    txHash: [`0x${'42'.repeat(32)}`],
    requestId: [`01${'42'.repeat(32)}`],
    paymentReference: [`0x${'42'.repeat(8)}`],
    reference: [marked],
    network: [marked],
    sourceNetwork: [marked],
    destinationNetwork: [marked],
    q: [
      { as: 'txHash', value: `0x${'42'.repeat(32)}` },
      { as: 'reference', value: marked },
    ],
    timeZone: marked,
  }

  test.each(filterFields.map(({ name }) => name))('of %s', (name) => {
    const { sql, bindings } = page({ [name]: everything[name] }, { position: after([AT]) })
    expect(sql).not.toMatch(/drop|42|1970|1971/)
    expect(sql.split('?').length - 1).toBe(bindings.length)
  })

  test('of all at once, in every order', () => {
    for (const sortBy of ['date', 'amount', 'status'] as const) {
      const { sql, bindings } = page(everything, { sortBy, position: after(sortBy === 'status' ? [1, AT] : [AT]) })
      expect(sql).not.toMatch(/drop|42|1970|1971/)
      expect(sql.split('?').length - 1).toBe(bindings.length)
    }
  })
})
