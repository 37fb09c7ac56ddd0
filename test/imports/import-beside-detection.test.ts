import { randomBytes, randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Detection } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import { type Hex, hexToBytes } from '../../src/domain/hex.ts'
import { formatPaymentLine } from '../../src/domain/payment-line.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { exportPayments } from '../../src/search/export/export-payments.ts'
import { checkAccount, type Difference } from '../../src/store/proof/check-account.ts'
import { repairAccount } from '../../src/store/proof/repair-account.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { findDifferences } from '../support/data/ledger.ts'
import { addAccount, balanceOf, canonical, configOf, detect, makeRequest, storeRequest } from '../support/detection.ts'

let database: TestDatabase
let chain: TestChain
let detection: Detection
let payer: Hex
beforeAll(async () => {
  ;[database, chain] = await Promise.all([createTestDatabase(), startTestChain({ automine: false })])
  detection = detect(database.knex, [configOf(chain, 'ETHEREUM')])
  ;[payer] = chain.wallets
  await chain.mine()
  await detection.scanOnce()
})
afterAll(async () => {
  await Promise.all([chain?.stop(), database?.drop()])
})

type Line = Record<string, unknown> & { readonly id: string }

async function importTo(account: Account, lines: readonly Line[]) {
  const text = lines.map((line) => JSON.stringify(line)).join('\n')
  const target = importPayments(database.knex, account)
  const { written, unchanged, bad } = await importLines(Readable.from([Buffer.from(text)]), target)
  return { written, unchanged, bad }
}

async function exportOf(account: Account): Promise<Line[]> {
  const lines: Line[] = []
  await exportPayments({ knex: database.knex, filter: { accountId: account.id } }, async (page) => {
    lines.push(...page.map((payment) => JSON.parse(formatPaymentLine(payment)) as Line))
  })
  return lines
}

/** What `waybill check` finds in one account. */
async function differencesOf({ id }: Account): Promise<Difference[]> {
  const found: Difference[] = []
  await checkAccount(database.knex, id, { onProgress: () => {}, onDifference: (each) => void found.push(each) })
  return found
}

/** A shop with a request of 10 USDC, and what was sent to pay it. */
interface Scene {
  readonly account: Account
  readonly request: PaymentRequest
  readonly transaction: Hex
}

/** Pays a request that is not stored yet: one transaction with a payment of each amount. It waits for the next block. */
async function openScene(amounts: readonly number[]): Promise<Scene> {
  const account = await addAccount(database.knex, randomUUID())
  const payee: Hex = `0x${randomBytes(20).toString('hex')}`
  const request = makeRequest({
    network: 'ETHEREUM',
    payee: canonical(payee),
    amount: '10',
    requestId: `01${randomBytes(32).toString('hex')}`,
  })
  const { transactionHash: transaction } = await chain.payInOneTransaction(
    payer,
    amounts.map((amount) => ({
      kind: 'ERC20',
      token: chain.tokens.USDC.address,
      to: payee,
      amount: BigInt(amount) * 1_000_000n,
      paymentReference: request.paymentReference,
    })),
  )
  return { account, request, transaction }
}

/** What a step of a history does. */
const steps = {
  store: ({ account, request }: Scene) => storeRequest(database.knex, account, request),
  see: async () => {
    await chain.mine()
    await detection.scanOnce()
  },
  settle: async () => {
    await chain.mine({ blocks: 4 })
    await detection.scanOnce()
  },
}
type Step = keyof typeof steps | 'import'

/** Every order in which request, lines and events can become known. */
const histories: readonly (readonly Step[])[] = [
  ['import', 'store', 'see', 'settle'],
  ['store', 'import', 'see', 'settle'],
  ['store', 'see', 'import', 'settle'],
  ['store', 'see', 'settle', 'import'],
  ['import', 'see', 'settle', 'store'],
  ['see', 'import', 'settle', 'store'],
  ['see', 'settle', 'import', 'store'],
  ['see', 'settle', 'store', 'import'],
]

async function play(scene: Scene, history: readonly Step[], lines: readonly Line[]): Promise<void> {
  for (const step of history) {
    if (step === 'import') expect(await importTo(scene.account, lines)).toMatchObject({ bad: 0 })
    else await steps[step](scene)
  }
  await detection.scanOnce()
}

/** The others are played in three orders, to save time: lines first, last, and between. */
const inEveryOrder: ReadonlySet<string> = new Set([
  'one line of one event',
  'two lines of one event',
  'one line of two events',
])

const DETECTED = 'detected'

/** What the rows say, in words that are the same for every scene. */
async function tell({ account, request }: Scene, lines: readonly Line[]) {
  const nameOf = new Map(lines.map(({ id }, at) => [id, 'abc'[at]]))
  const rows = await exportOf(account)
  const reported = rows.map(({ id, amount, superseded = false }) => [
    nameOf.get(id) ?? DETECTED,
    superseded === true ? 'superseded' : amount,
  ])
  const { status, paidAmount, pendingAmount } = await balanceOf(database.knex, account, request)
  return { rows: reported.map((row) => row.join(' ')).toSorted(), status, paidAmount, pendingAmount }
}

/** Lines for what was paid. Amounts are wrong on purpose: once the chain has spoken, they count nothing. */
type MakeLines = (scene: Scene) => readonly (Partial<Line> & object)[]

function linesOf(scene: Scene, make: MakeLines): Line[] {
  const { payee } = scene.request
  return make(scene).map((more) => ({
    id: randomUUID(),
    timestamp: '2026-03-01T12:00:00Z',
    amount: '10',
    currency: 'USDC-ETHEREUM',
    network: 'ETHEREUM',
    status: 'CONFIRMED',
    payee,
    txHash: scene.transaction,
    requestId: scene.request.requestId,
    ...more,
  }))
}

const byReference: MakeLines = ({ request: { paymentReference } }) => [{ requestId: undefined, paymentReference }]

describe.each<
  [string, readonly number[], MakeLines, { rows: readonly string[]; paid: string; later?: readonly string[] }]
>([
  ['one line of one event', [5], () => [{}], { rows: ['a 5'], paid: '5' }],
  ['a FAILED line of one event', [5], () => [{ status: 'FAILED' }], { rows: ['a 5'], paid: '5' }],
  ['a PENDING line of one event', [5], () => [{ status: 'PENDING' }], { rows: ['a 5'], paid: '5' }],
  ['a line that names the reference alone', [5], byReference, { rows: ['a 5'], paid: '5' }],
  [
    'a line that names the reference and another payee',
    [5],
    (scene) => byReference(scene).map((line) => ({ ...line, payee: chain.wallets[3] })),
    { rows: ['a 5'], paid: '5' },
  ],
  [
    'a line that names the transaction as its source alone',
    [5],
    ({ transaction }) => [{ txHash: undefined, sourceTxHash: transaction }],
    { rows: ['a 5'], paid: '5' },
  ],
  ['two lines of one event', [5], () => [{}, {}], { rows: ['a superseded', 'b superseded', 'detected 5'], paid: '5' }],
  [
    'two lines of one event, one by the reference',
    [5],
    (scene) => [{}, ...byReference(scene)],
    { rows: ['a superseded', 'b superseded', 'detected 5'], paid: '5' },
  ],
  ['one line of two events', [5, 2], () => [{}], { rows: ['a superseded', 'detected 2', 'detected 5'], paid: '7' }],
  [
    'two lines of two events',
    [5, 2],
    () => [{}, { status: 'FAILED' }],
    { rows: ['a superseded', 'b superseded', 'detected 2', 'detected 5'], paid: '7' },
  ],
  [
    'a line with an event that is not one',
    [5],
    () => [{ eventIndex: 137 }],
    { rows: ['a superseded', 'detected 5'], paid: '5' },
  ],
  [
    'a line without a transaction',
    [5],
    () => [{ txHash: undefined }],
    { rows: ['a superseded', 'detected 5'], paid: '5' },
  ],
  [
    'a line of another transaction',
    [5],
    () => [{ txHash: `0x${'e2'.repeat(32)}`, amount: '2' }],
    { rows: ['a 2', 'detected 5'], paid: '7' },
  ],
  [
    'a superseded line',
    [5],
    () => [{ superseded: true, amount: '7' }, { superseded: true }],
    { rows: ['a superseded', 'b superseded', 'detected 5'], paid: '5' },
  ],
])('%s', (name, amounts, make, { rows, paid }) => {
  it.each(histories.filter((_, at) => inEveryOrder.has(name) || at % 3 === 0))(
    'gives the same standing by %s, %s, %s, %s',
    async (...history) => {
      const scene = await openScene(amounts)
      const lines = linesOf(scene, make)
      await play(scene, history, lines)
      const expected = { rows, paidAmount: paid, pendingAmount: '0', status: 'PARTIALLY_PAID' }
      expect(await tell(scene, lines)).toEqual(expected)
      expect(await differencesOf(scene.account)).toEqual([])

      const found = await exportOf(scene.account)
      expect(await importTo(scene.account, lines)).toEqual({ written: 0, unchanged: lines.length, bad: 0 })
      expect(await importTo(scene.account, found)).toEqual({ written: 0, unchanged: found.length, bad: 0 })
      expect(await exportOf(scene.account)).toEqual(found)
      const newer = lines.map((line) => ({ ...line, amount: '9', updatedAt: '2099-01-01T00:00:00Z' }))
      await importTo(scene.account, newer)
      const supersededRows = rows.filter((row) => row.includes('superseded'))
      const after = await tell(scene, lines)
      expect(after.rows.filter((row) => row.includes('superseded'))).toEqual(supersededRows)
      if (!rows.includes('a 2')) expect(after).toEqual(expected)
    },
  )
})

const line = (scene: Scene, more: Partial<Line> & object = {}) => linesOf(scene, () => [more])[0] as Line

it('gives the same standing to lines that are imported one after the other', async () => {
  const scene = await openScene([5])
  const lines = [line(scene), line(scene)]
  await steps.store(scene)
  await importTo(scene.account, lines.slice(0, 1))
  await steps.settle()
  await importTo(scene.account, lines.slice(1))
  expect(await tell(scene, lines)).toMatchObject({ rows: ['a 5', 'b superseded'], paidAmount: '5' })

  const after = await openScene([5])
  const late = [line(after), line(after)]
  await steps.store(after)
  await steps.settle()
  for (const one of late) await importTo(after.account, [one])
  expect(await tell(after, late)).toMatchObject({ rows: ['a 5', 'b superseded'], paidAmount: '5' })
  expect(await findDifferences(database.knex)).toEqual([])
})

it('leaves the other line its event where one moves to another transaction', async () => {
  const scene = await openScene([5])
  const lines = [line(scene), line(scene)] as const
  await play(scene, ['store', 'settle', 'import'], lines)
  expect(await tell(scene, lines)).toMatchObject({ paidAmount: '5' })
  const moved = { ...lines[1], txHash: `0x${'e3'.repeat(32)}`, amount: '2', updatedAt: '2099-01-01T00:00:00Z' }
  await importTo(scene.account, [moved])
  expect(await tell(scene, lines)).toMatchObject({ rows: ['a 5', 'b 2'], paidAmount: '7' })
})

it('keeps a line out of other accounts', async () => {
  const scene = await openScene([5])
  const other = { ...scene, account: await addAccount(database.knex, randomUUID()) }
  await steps.store(scene)
  await steps.store(other)
  const lines = [line(scene), line(scene)]
  await importTo(scene.account, lines)
  await steps.settle()
  expect(await tell(scene, lines)).toMatchObject({ rows: ['a superseded', 'b superseded', 'detected 5'] })
  expect(await tell(other, lines)).toMatchObject({ rows: ['detected 5'], paidAmount: '5' })
})

describe('a reorg', () => {
  it.each<[string, number, Step[], readonly string[], readonly string[]]>([
    ['the only line', 1, ['store', 'import', 'see'], ['a superseded'], ['a 5']],
    ['the only line, which came later', 1, ['store', 'see', 'import'], ['a superseded'], ['a 5']],
    [
      'two lines',
      2,
      ['store', 'import', 'see'],
      ['a superseded', 'b superseded'],
      ['a superseded', 'b superseded', 'detected 5'],
    ],
  ])('leaves nothing that counts of %s, until its event is read again', async (_, count, history, lost, found) => {
    const scene = await openScene([5])
    const lines = Array.from({ length: count }, () => line(scene))
    await play(scene, history, lines)
    expect(await tell(scene, lines)).toMatchObject({ rows: found, pendingAmount: '5' })
    await chain.reorg(1)
    await steps.see()
    expect(await tell(scene, lines)).toEqual({ rows: lost, status: 'OPEN', paidAmount: '0', pendingAmount: '0' })
    expect(await findDifferences(database.knex)).toEqual([])
    await importTo(scene.account, lines)
    expect(await tell(scene, lines)).toMatchObject({ rows: lost, status: 'OPEN' })
  })

  it.each<[string, number, readonly string[]]>([
    ['one line', 1, ['a 5']],
    ['two lines', 2, ['a superseded', 'b superseded', 'detected 5']],
  ])('changes nothing for good where the transaction of %s is mined again', async (_, count, rows) => {
    const scene = await openScene([5])
    const lines = Array.from({ length: count }, () => line(scene))
    await play(scene, ['store', 'import', 'see'], lines)
    await chain.reorg(1, [{ hash: scene.transaction }])
    await steps.settle()
    expect(await tell(scene, lines)).toMatchObject({ rows, paidAmount: '5', pendingAmount: '0' })
    expect(await findDifferences(database.knex)).toEqual([])
  })
})

it('counts nothing for a line that comes after a reorg has removed its event, or replaces one', async () => {
  const scene = await openScene([5])
  const lines = [line(scene), line(scene)]
  await play(scene, ['store', 'import', 'see'], lines.slice(0, 1))
  await chain.reorg(1)
  await steps.see()
  await importTo(scene.account, lines)
  await importTo(scene.account, [{ ...line(scene), id: lines[0]?.id ?? '', updatedAt: '2099-01-01T00:00:00Z' }])
  expect(await tell(scene, lines)).toMatchObject({ rows: ['a superseded', 'b superseded'], status: 'OPEN' })
  expect(await findDifferences(database.knex)).toEqual([])
})

it('takes a later line of a payment that settling has changed since, in any order with the terms', async () => {
  const foreign = { txHash: `0x${'e4'.repeat(32)}`, status: 'PENDING', updatedAt: '2026-03-01T12:00:00Z' }
  const failed = { ...foreign, status: 'FAILED', updatedAt: '2026-03-01T12:00:01Z' }
  for (const history of [
    ['pending', 'store', 'failed'],
    ['store', 'pending', 'failed'],
    ['failed', 'pending', 'store'],
  ]) {
    const scene = await openScene([5])
    const { id } = line(scene)
    for (const step of history) {
      if (step === 'store') await steps.store(scene)
      else await importTo(scene.account, [{ ...line(scene, step === 'failed' ? failed : foreign), id }])
    }
    await steps.settle()
    expect(await tell(scene, [])).toMatchObject({ paidAmount: '5', pendingAmount: '0' })
  }
})

it('exports superseded payments so that they are the same elsewhere, byte for byte', async () => {
  const scene = await openScene([5, 2])
  const lines = [line(scene), line(scene, { status: 'FAILED' })]
  await play(scene, ['store', 'settle', 'import'], lines)
  const exported = await exportOf(scene.account)
  expect(exported.filter(({ superseded }) => superseded === true)).toHaveLength(2)
  const elsewhere = await addAccount(database.knex, randomUUID())
  await importTo(elsewhere, exported)
  expect(await exportOf(elsewhere)).toEqual(exported)
  expect(await importTo(elsewhere, exported)).toEqual({ written: 0, unchanged: 4, bad: 0 })
})

it('finds by check what older imports have left, and repairs it', async () => {
  const { knex } = database
  const scene = await openScene([5])
  const twice = await openScene([5])
  const unlisted = await openScene([5])
  for (const each of [scene, twice, unlisted]) await steps.store(each)
  await steps.settle()
  const lines = [line(scene), line(twice), line(twice), line(unlisted, { txHash: undefined })]
  for (const [at, { account, request, transaction }] of [scene, twice, twice, unlisted].entries()) {
    // As an older version stored it: beside the events.
    const { id, ...rest } = lines[at] as Line
    await importTo(account, [{ ...rest, id, requestId: undefined, txHash: undefined }])
    await knex('payments')
      .where({ account_id: account.id, id })
      .update({
        request_id: hexToBytes(request.requestId),
        tx_hash: 'txHash' in rest && rest['txHash'] !== undefined ? hexToBytes(transaction) : null,
      })
  }
  const wrong = (await findDifferences(knex)).filter(({ check }) => check === 'payment')
  // Of which account they are first is not said.
  expect(Object.fromEntries(wrong.map(({ where, expected }) => [where, expected]))).toEqual({
    [String(lines[0]?.id)]: expect.stringMatching(/^one payment with /),
    ...Object.fromEntries(lines.slice(1).map(({ id }) => [id, 'superseded'])),
  })
  for (const { account } of [scene, twice, unlisted]) {
    await repairAccount(knex, account.id, { now: new Date(), isLogWrong: false })
  }
  expect(await findDifferences(knex)).toEqual([])
  expect(await tell(scene, lines)).toMatchObject({ rows: ['a 5'], paidAmount: '5' })
  expect(await tell(twice, lines)).toMatchObject({
    rows: ['b superseded', 'c superseded', 'detected 5'],
    paidAmount: '5',
  })
  expect(await tell(unlisted, lines)).toMatchObject({ paidAmount: '5' })
})

it('counts a line without a transaction until its chain is followed', async () => {
  const own = await createTestDatabase()
  try {
    const scene = { ...(await openScene([5])), account: await addAccount(own.knex, 'shop') }
    await storeRequest(own.knex, scene.account, scene.request)
    const text = JSON.stringify(line(scene, { txHash: undefined, amount: '3' }))
    const target = () => importPayments(own.knex, scene.account)
    await importLines(Readable.from([Buffer.from(text)]), target())
    expect(await balanceOf(own.knex, scene.account, scene.request)).toMatchObject({ paidAmount: '3' })
    await chain.mine({ blocks: 4 })
    await detect(own.knex, [configOf(chain, 'ETHEREUM')]).scanOnce()
    expect(await balanceOf(own.knex, scene.account, scene.request)).toMatchObject({ paidAmount: '5' })
    expect(await findDifferences(own.knex)).toEqual([])
  } finally {
    await own.drop()
  }
})
