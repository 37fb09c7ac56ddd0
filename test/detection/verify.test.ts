/** `verify`: no difference where detection was right, and each damage to the database found as what it is. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import { keccak256 } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { createTokenDirectory } from '../../src/chains/token-directory.ts'
import { verifyChain } from '../../src/detection/verify/verify-chain.ts'
import type { VerifyProgress, VerifyReport } from '../../src/detection/verify/verify-report.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Address } from '../../src/domain/address.ts'
import type { Hex } from '../../src/domain/hex.ts'
import { paymentReferenceOf } from '../../src/domain/identifiers.ts'
import { bitsOfMarks } from '../../src/domain/payment.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type Meddle, type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { addAccount, canonical, configOf, detect, makeRequest, storeRequest } from '../support/detection.ts'
import { silentLogger } from '../support/logs.ts'
import { rowsOf, runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const USD = 10n ** 8n
const TABLES = ['payments', 'refunds', 'unmatched_events', 'requests', 'payment_statistics'] as const

let database: TestDatabase
let knex: Knex
let chain: TestChain
let config: ChainConfig
let shop: Account
let other: Account
let proxy: RpcProxy
/** Requests and transactions of the scene, by what they show. */
const requests = new Map<string, PaymentRequest>()
const hashes = new Map<string, Hex>()

beforeAll(async () => {
  ;[database, chain] = await Promise.all([createTestDatabase(), startTestChain({ chainId: 31_571 })])
  knex = database.knex
  config = configOf(chain, 'BASE')
  ;[shop, other] = [await addAccount(knex, 'shop'), await addAccount(knex, 'other')]
  proxy = await startRpcProxy(chain.rpcUrl)
  await playScene()
  const detection = detect(knex, [config])
  await detection.scanOnce()
  await chain.mine({ blocks: 5 })
  await detection.scanOnce()
  for (const table of TABLES) await knex.raw(`create table kept_${table} as select * from ${table}`)
})
afterAll(async () => {
  await Promise.all([chain?.stop(), proxy?.stop()])
  await database?.drop()
})
afterEach(async () => {
  proxy.meddle()
  for (const table of TABLES) {
    await knex(table).delete()
    await knex.raw(`insert into ${table} select * from kept_${table}`)
  }
})

/** Addresses as the chain's helpers take them. */
const hexOf = (address: Address) => address as string as Hex

function freshAddress(seed: string): Address {
  return canonical(`0x${keccak256(new TextEncoder().encode(seed)).slice(-40)}`)
}

/** A stored request for its own payee, a wallet of the node where `payee` is given. */
async function request(says: string, terms: Partial<Parameters<typeof makeRequest>[0]> = {}, account = shop) {
  const made = makeRequest({ payee: freshAddress(says), network: 'BASE', ...terms })
  const stored = await storeRequest(knex, account, made)
  if (account === shop) requests.set(says, stored)
  return stored
}

/** Payments and refunds of all kinds, and what only looks like one. */
async function playScene(): Promise<void> {
  const [payer, payee, third] = chain.wallets
  const { USDC, TAX, DAI } = chain.tokens
  for (const token of [USDC, DAI]) await chain.fund(token, payer, 10n ** 24n)
  await chain.fund(USDC, payee, 10n ** 12n)
  await chain.fund(TAX, payer, 10n ** 24n)
  const token = { kind: 'ERC20', token: USDC.address } as const
  const fee = { feeAmount: 1_000000n, feeAddress: hexOf(freshAddress('fee')) }
  const note = async (says: string, paid: Promise<{ transactionHash: Hex }>) =>
    void hashes.set(says, (await paid).transactionHash)
  const pay = async (says: string, amount: bigint, terms: object = {}) => {
    const { payee: to, paymentReference } = requests.get(says) ?? (await request(says))
    await note(says, chain.pay(payer, { ...token, to: hexOf(to), amount, paymentReference, ...terms }))
  }
  await pay('token', 100_000000n, fee)
  await pay('partial', 40_000000n)
  const coins = await request('coins', { paymentCurrency: 'ETH-BASE', amount: '1' })
  const { paymentReference } = coins
  await note(
    'coins',
    chain.pay(payer, { kind: 'NATIVE', exact: true, to: hexOf(coins.payee), amount: 10n ** 18n, paymentReference }),
  )
  const fiat = await request('fiat', { invoiceCurrency: 'USD', amount: '25' })
  const conversion = { to: hexOf(fiat.payee), amount: 25n * USD, paymentReference: fiat.paymentReference }
  await note('fiat', chain.pay(payer, { ...token, kind: 'ERC20_CONVERSION', ...conversion }))
  const taxed = await request('taxed', { paymentCurrency: 'TAX-BASE', amount: '99' })
  await pay('taxed', 100n * 10n ** 18n, {
    token: TAX.address,
    to: hexOf(taxed.payee),
    paymentReference: taxed.paymentReference,
  })
  const batch = await request('batch', { amount: '6' })
  const each = { ...token, to: hexOf(batch.payee), paymentReference: batch.paymentReference }
  const parts = [1_000000n, 2_000000n, 3_000000n].map((amount) => ({ ...each, amount }))
  await note('batch', chain.payInOneTransaction(payer, parts))
  await request('shared', {}, other).then(async (of) => {
    await storeRequest(knex, shop, of)
    await note(
      'shared',
      chain.pay(payer, { ...token, to: hexOf(of.payee), amount: 7_000000n, paymentReference: of.paymentReference }),
    )
  })
  await playRefund([payer, payee, third], pay, note)
  await request('fake')
  await pay('fake', 100_000000n, { token: DAI.address })
  const plain = await request('converted')
  const converted = { to: hexOf(plain.payee), amount: 10n * USD, paymentReference: plain.paymentReference }
  await note('converted', chain.pay(payer, { ...token, kind: 'ERC20_CONVERSION', ...converted }))
  await request('not converted', { invoiceCurrency: 'USD', amount: '25' })
  await pay('not converted', 25_000000n)
  await request('stranger').then(() => pay('stranger', 1_000000n, { to: third }))
  await note('unknown', chain.pay(payer, { ...token, to: third, amount: 1n, paymentReference: '0x00000000000000aa' }))
}

/** A request that was overpaid by two payments, of which a refund returns the second and a part of the first. */
async function playRefund(
  [payer, payee, third]: readonly [Hex, Hex, Hex],
  pay: (says: string, amount: bigint) => Promise<void>,
  note: (says: string, paid: Promise<{ transactionHash: Hex }>) => Promise<void>,
): Promise<void> {
  const refundAddress = canonical(third)
  const { requestId, salt } = await request('returned', { payee: canonical(payee), refundAddress, amount: '100' })
  await pay('returned', 60_000000n)
  await pay('returned', 50_000000n)
  const back = { kind: 'ERC20', token: chain.tokens.USDC.address, to: third } as const
  const paymentReference = paymentReferenceOf(requestId, salt, refundAddress)
  await note('refund', chain.pay(payee, { ...back, amount: 60_000000n, paymentReference }))
  await note('forged', chain.pay(payer, { ...back, amount: 5_000000n, paymentReference }))
}

function verify(options: Partial<Parameters<typeof verifyChain>[0]> = {}): Promise<VerifyReport> {
  const tokens = createTokenDirectory([config])
  const clock = () => new Date()
  return verifyChain({ knex, chain: config, tokens, clock, logger: silentLogger, againAfterMs: 0, ...options })
}

/** So small that requests are paid and refunded over several of them. */
const SMALL_SECTIONS = { blocks: 4, events: 2, ms: 60_000 }

/** Kind, field, stored and expected value of each difference. */
function foundIn({ differences }: VerifyReport): (string | undefined)[][] {
  return differences.map(({ kind, field, stored, chain: expected }) => [kind, field, stored, expected])
}

const paidBy = (says: string) =>
  knex('payments').where({ tx_hash: Buffer.from((hashes.get(says) ?? '').slice(2), 'hex') })
const requestOf = (says: string) =>
  knex('requests').where({ request_id: Buffer.from(requests.get(says)?.requestId ?? '', 'hex') })

describe('what detection found', () => {
  it('is what the chain says', async () => {
    const report = await verify()
    expect(report).toMatchObject({ differences: [], unproven: [], notes: [] })
    expect(report.counts).toMatchObject({ payments: 12, refunds: 1, unmatched: 6 })
    expect(report.totals).toEqual([
      { account: 'other', currency: 'USDC-BASE', payments: 1, paid: '7', refunds: 0, refunded: '0' },
      { account: 'shop', currency: 'ETH-BASE', payments: 1, paid: '1', refunds: 0, refunded: '0' },
      { account: 'shop', currency: 'TAX-BASE', payments: 1, paid: '99', refunds: 0, refunded: '0' },
      { account: 'shop', currency: 'USDC-BASE', payments: 9, paid: '288', refunds: 1, refunded: '60' },
    ])
    expect(await verify({ section: SMALL_SECTIONS })).toEqual(report)
    expect(await knex('payments').count('* as n')).toEqual([{ n: 12n }])
    expect(await knex('unmatched_events').orderBy('block_number').pluck('reason')).toEqual([
      'NOT_FROM_PAYEE',
      'WRONG_TOKEN',
      'WRONG_TOKEN',
      'NOT_A_CONVERSION',
      'WRONG_PAYEE',
      'UNKNOWN_TOPIC',
    ])
  })

  it('asks no node for logs, and for receipts only where a bloom allows events', async () => {
    const asked = proxy.calls.length
    const { counts } = await verify({ chain: { ...config, rpcUrls: [proxy.url] } })
    const methods = proxy.calls.slice(asked).map(({ method }) => method)
    expect(methods).not.toContain('eth_getLogs')
    expect(counts.receiptsRead).toBeLessThan(counts.blocks / 2)
    expect(methods.filter((method) => method === 'eth_getBlockReceipts')).toHaveLength(counts.receiptsRead)
  })

  it('is settled by the payments before and after the range, too', async () => {
    const [{ block_number: number } = { block_number: 0n }] = await knex('refunds').select('block_number')
    const report = await verify({ from: Number(number), to: Number(number) })
    // Without the two payments before it, the refund would return nothing.
    expect(report).toMatchObject({ differences: [], counts: { payments: 0, refunds: 1, requests: 1, blocks: 1 } })
  })

  it('is compared up to the last final block, and the rest is reported', async () => {
    const { to, block, notes } = await verify({ to: 1_000_000 })
    expect(to).toBe(block.number)
    expect(notes).toEqual([`blocks above ${to} are left out: they are not final, or not read yet`])
    await expect(verify({ from: 900_000 })).rejects.toThrow(
      /no block of BASE from 900000 on is final and was read: choose blocks from \d+ to \d+$/,
    )
  })
})

interface Damage {
  readonly says: string
  /** Damages of one round touch different requests, and are done together. */
  readonly round: number
  damage(): Promise<unknown>
  readonly found: readonly (readonly (string | RegExp | undefined)[])[]
}

const damages: readonly Damage[] = [
  {
    says: 'a payment is missing',
    round: 1,
    damage: () => paidBy('token').delete(),
    found: [['PAYMENT', 'row', undefined, /^100 USDC-BASE for request/]],
  },
  {
    says: 'an amount is wrong by one unit',
    round: 2,
    damage: () => paidBy('token').update({ amount: '100.000001', invoice_amount: '100.000001' }),
    found: [
      ['PAYMENT', 'amount', '100.000001', '100'],
      ['PAYMENT', 'invoiceAmount', '100.000001', '100'],
    ],
  },
  {
    says: 'a status is wrong',
    round: 1,
    damage: () => paidBy('partial').update({ status: 3 }),
    found: [['PAYMENT', 'status', 'CONFIRMED', 'PARTIAL']],
  },
  {
    says: 'a payer is invented',
    round: 1,
    damage: () =>
      paidBy('batch')
        .where({ event_index: 1 })
        .update({ payer: Buffer.from(`01${'ab'.repeat(20)}`, 'hex') }),
    found: [['PAYMENT', 'payer', `0x${'ab'.repeat(20)}`, /^0x[0-9a-f]{40}$/]],
  },
  {
    says: 'a payer is forgotten',
    round: 1,
    damage: () => paidBy('coins').update({ payer: null }),
    found: [['PAYMENT', 'payer', undefined, /^0x[0-9a-f]{40}$/]],
  },
  {
    says: 'an event index is wrong',
    round: 2,
    damage: () => paidBy('batch').where({ event_index: 2 }).update({ event_index: 5 }),
    found: [['PAYMENT', 'eventIndex', '5', '2']],
  },
  {
    says: 'a payment is there twice',
    round: 3,
    damage: () =>
      knex.raw(`create temporary table twice as select * from payments where event_index = 1 limit 1;
        update twice set id = gen_random_uuid(), event_index = 9; insert into payments select * from twice; drop table twice`),
    found: [['PAYMENT', 'row', /^2 USDC-BASE for request/, undefined]],
  },
  {
    says: 'a fee line is lost',
    round: 3,
    damage: () => paidBy('token').update({ fees: '[]' }),
    found: [['PAYMENT', 'fees', '', /^PLATFORM 1 USDC-BASE 0x/]],
  },
  {
    says: 'marks are invented',
    round: 2,
    damage: () => paidBy('coins').update({ marks: bitsOfMarks(['PAYER_NOT_ALLOWED', 'PAYER_SCREENED']) }),
    found: [['PAYMENT', 'marks', 'PAYER_NOT_ALLOWED, PAYER_SCREENED', '']],
  },
  {
    says: 'a fee of a batch is invented',
    round: 4,
    damage: () =>
      paidBy('batch').where({ event_index: 2 }).update({
        fees: '[{"type":"PROTOCOL","stage":"SENDING","amount":"0.1","currency":"USDC-BASE","receiverAddress":"0x00"}]',
      }),
    found: [['PAYMENT', 'fees', 'PROTOCOL 0.1 USDC-BASE 0x00', '']],
  },
  {
    says: 'the gas is wrong',
    round: 4,
    damage: () => paidBy('token').update({ gas: knex.raw(`jsonb_set(gas, '{used}', '"1"')`) }),
    found: [['PAYMENT', 'gas', /^1 at /, /^\d{5,} at /]],
  },
  {
    says: 'a block and a time are wrong',
    round: 5,
    damage: () => paidBy('token').update({ timestamp: new Date('2020-01-01T00:00:00Z'), block_number: 1 }),
    found: [
      ['PAYMENT', 'blockNumber', '1', /^\d+$/],
      ['PAYMENT', 'timestamp', /Z$/, /Z$/],
    ],
  },
  {
    says: 'a payment is of another request',
    round: 6,
    damage: async () =>
      paidBy('token').update({ request_id: Buffer.from(requests.get('partial')?.requestId ?? '', 'hex') }),
    found: [['PAYMENT', 'requestId', /^01/, /^01/]],
  },
  {
    says: 'a payment is not final',
    round: 7,
    damage: () => paidBy('token').update({ final: false }),
    found: [['PAYMENT', 'final', 'false', 'true']],
  },
  {
    says: 'a refund is missing',
    round: 3,
    damage: () => knex('refunds').delete(),
    found: [['REFUND', 'row', undefined, /^60 USDC-BASE for request/]],
  },
  {
    says: 'a refund that nobody made',
    round: 4,
    damage: () =>
      knex.raw(`create temporary table more as select * from refunds; update more set event_index = 3, amount = 1;
        insert into refunds select * from more; drop table more`),
    found: [['REFUND', 'row', /^1 USDC-BASE for request/, undefined]],
  },
  {
    says: 'a refund is laid on the wrong payment',
    round: 5,
    damage: () => paidBy('returned').update({ refunds: '[]', refunded_amount: 0 }),
    found: [
      ['PAYMENT', 'refunds', '', /^50 by 0x/],
      ['PAYMENT', 'refundedAmount', '0', '50'],
    ],
  },
  {
    says: 'a refund went to somebody else',
    round: 6,
    damage: () => knex('refunds').update({ recipient: Buffer.from(`01${'ab'.repeat(20)}`, 'hex') }),
    found: [['REFUND', 'recipient', `0x${'ab'.repeat(20)}`, /^0x[0-9a-f]{40}$/]],
  },
  {
    says: 'the place of a payment and of a refund in their blocks is wrong',
    round: 7,
    damage: async () => {
      await paidBy('partial').update({ log_index: 77 })
      await knex('refunds').update({ log_index: 78 })
    },
    found: [
      ['PAYMENT', 'logIndex', '77', /^\d+$/],
      ['REFUND', 'logIndex', '78', /^\d+$/],
    ],
  },
  {
    says: 'the reason of an unmatched event is another',
    round: 1,
    damage: () => knex('unmatched_events').where({ reason: 'WRONG_PAYEE' }).update({ reason: 'NOTHING_RECEIVED' }),
    found: [['UNMATCHED', 'reason', 'NOTHING_RECEIVED', 'WRONG_PAYEE']],
  },
  {
    says: 'an unmatched event is missing',
    round: 2,
    damage: () => knex('unmatched_events').where({ reason: 'UNKNOWN_TOPIC' }).delete(),
    found: [['UNMATCHED', 'row', undefined, 'UNKNOWN_TOPIC']],
  },
  {
    says: 'the standing of a request is off',
    round: 2,
    damage: () => requestOf('returned').update({ paid: 9, pending: 8, held: 7, status: 1 }),
    found: [
      ['REQUEST', 'status', 'OPEN', 'PAID'],
      ['REQUEST', 'paidAmount', '9', '110'],
      ['REQUEST', 'pendingAmount', '8', '0'],
      ['REQUEST', 'heldAmount', '7', '50'],
    ],
  },
]

describe('damage to the database is found, and nothing else', () => {
  const rounds = [...Map.groupBy(damages, ({ round }) => round).values()]
  it.each(rounds.map((round) => [round.map(({ says }) => says).join('; '), round] as const))('%s', async (_, round) => {
    for (const each of round) await each.damage()
    const expected = round.flatMap(({ found }) =>
      found.map((values) => values.map((value) => (value instanceof RegExp ? expect.stringMatching(value) : value))),
    )
    // Each request is compared by all of its payments, whichever section they are in.
    for (const section of [undefined, SMALL_SECTIONS]) {
      const found = foundIn(await verify({ section }))
      expect(found).toEqual(expect.arrayContaining(expected))
      expect(found).toHaveLength(expected.length)
    }
  })

  it('of one account alone, where only it is asked about', async () => {
    await knex('payments').where({ account_id: other.id }).delete()
    expect(foundIn(await verify({ account: shop }))).toEqual([])
    expect(foundIn(await verify({ account: other }))).not.toEqual([])
  })

  it('is not a difference when the service mends it a moment later', async () => {
    await paidBy('partial').update({ status: 3 })
    const mend = async () => paidBy('partial').update({ status: 2 })
    const verifying = verify({
      againAfterMs: 300,
      onProgress: () => setTimeout(() => void mend(), 150),
    })
    expect(foundIn(await verifying)).toEqual([])
  })
})

describe('a verification that is stopped', () => {
  it('tells what was found until then, and how far it was', async () => {
    await paidBy('token').delete()
    await knex('unmatched_events').where({ reason: 'UNKNOWN_TOPIC' }).delete()
    const whole = await verify()
    const stopping = new AbortController()
    const onProgress = ({ differences }: VerifyProgress) => {
      if (differences > 0) stopping.abort(new Error('stopped by SIGINT'))
    }
    const report = await verify({ section: SMALL_SECTIONS, onProgress, signal: stopping.signal })
    const { from, to, counts, stopped } = report
    expect(stopped).toMatchObject({ blocksTotal: whole.counts.blocks })
    expect(stopped?.blocksRead).toBeGreaterThanOrEqual(counts.blocks)
    expect(counts.blocks).toBe(to - from + 1)
    expect(foundIn(report)[0]).toEqual(foundIn(whole)[0])
    expect(report.differences.length).toBeLessThan(whole.differences.length)
    const rest = await verify({ from: to + 1 })
    expect(rest.counts.blocks + counts.blocks).toBe(whole.counts.blocks)
    expect(foundIn(rest)).toEqual([['UNMATCHED', 'row', undefined, 'UNKNOWN_TOPIC']])
  })
})

describe('a node', () => {
  const through = (meddle: Meddle, ...urls: string[]) => {
    proxy.meddle(meddle)
    return verify({ chain: { ...config, rpcUrls: [proxy.url, ...urls] } })
  }
  /** Takes the logs out of the receipts of one transaction, and out of answers to eth_getLogs. */
  const leaveOut: Meddle = ({ method }, ask) => {
    if (method === 'eth_getLogs') return Promise.resolve([])
    if (method !== 'eth_getBlockReceipts') return undefined
    return ask().then((receipts) =>
      (receipts as { transactionHash: Hex; logs: unknown[] }[]).map((receipt) =>
        receipt.transactionHash === hashes.get('token') ? { ...receipt, logs: [] } : receipt,
      ),
    )
  }

  it('that leaves logs out is reported, and nothing is compared with its block', async () => {
    const { differences, unproven } = await through(leaveOut)
    expect(differences).toEqual([])
    expect(unproven).toEqual([
      { where: expect.stringMatching(/^block \d+$/), why: expect.stringMatching(/do not have the root/) },
    ])
  })

  it('that leaves logs out is passed over where another has them', async () => {
    await paidBy('token').delete()
    const report = await through(leaveOut, chain.rpcUrl)
    expect(foundIn(report)[0]).toEqual(['PAYMENT', 'row', undefined, expect.stringMatching(/^100 USDC/)])
    expect(report.unproven).toMatchObject([{ isInfo: true }])
  })

  it('that changes a header, its bloom say, is not believed', async () => {
    const meddle: Meddle = ({ method }, ask) =>
      method === 'eth_getBlockByNumber'
        ? ask().then((block) => ({ ...(block as object), logsBloom: `0x${'00'.repeat(256)}` }))
        : undefined
    const alone = await through(meddle)
    expect(alone.unproven).not.toEqual([])
    await paidBy('token').delete()
    expect(foundIn(await through(meddle, chain.rpcUrl))).not.toEqual([])
  })

  it('whose receipts have an encoding that is not known needs a second that gives the same', async () => {
    const meddle: Meddle = ({ method }, ask) =>
      method === 'eth_getBlockReceipts'
        ? ask().then((receipts) => (receipts as object[]).map((receipt) => ({ ...receipt, type: '0x7b' })))
        : undefined
    const alone = await through(meddle)
    expect(alone.unproven).toContainEqual(expect.objectContaining({ why: expect.stringMatching(/add a second node/) }))
    expect(alone.differences).toEqual([])
    const second = `${proxy.url}/second`
    expect(await through(meddle, second)).toMatchObject({ differences: [], unproven: [] })
    await paidBy('token').delete()
    const found = foundIn(await through(meddle, second))
    expect(found[0]).toEqual(['PAYMENT', 'row', undefined, expect.stringMatching(/^100 USDC/)])
  })

  it('without eth_getBlockReceipts is asked for each receipt', async () => {
    const meddle: Meddle = ({ method }) =>
      method === 'eth_getBlockReceipts'
        ? Promise.resolve({ rpcError: { code: -32601, message: 'method not found' } })
        : undefined
    expect(await through(meddle)).toMatchObject({ differences: [], unproven: [] })
  })
})

describe('the command', () => {
  let folder: string
  let environment: Record<string, string>

  beforeAll(async () => {
    folder = await makeTempFolder('verify')
    const file = join(folder, 'chains.json')
    await writeFile(
      file,
      JSON.stringify({ chains: [{ ...chain.config({ name: 'BASE', finalityDepth: 3 }), screening: undefined }] }),
    )
    environment = { CHAINS_FILE: file, DATABASE_URL: urlOfDatabase(database), DATA_DIR: join(folder, 'unused') }
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('ends with 0 and no line where nothing differs', async () => {
    const { code, stdout, stderr } = await runCommand(environment, ['verify', '--chain', 'base'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toContain('12 payments, 1 refunds, 6 unmatched events')
    expect(stderr).toContain('no difference')
  })

  it('ends with 1, a line for each difference, and the commands that repair', async () => {
    await paidBy('coins').update({ payer: null })
    const [{ block_number: block } = { block_number: 0n }] = await paidBy('coins').select('block_number')
    const { code, stdout, stderr } = await runCommand(environment, ['verify', '--chain', 'BASE'])
    expect(code).toBe(1)
    const payer = canonical(chain.wallets[0])
    expect(rowsOf(stdout)).toEqual([['PAYMENT', 'shop', hashes.get('coins'), '0', 'payer', '-', payer]])
    expect(stderr).toContain(`to repair: waybill verify --chain BASE --from ${block} --to ${block} --repair\n`)
  })

  it('compares the statistics and the log of changes, too', async () => {
    await knex('payment_statistics').where({ currency: 'ETH-BASE' }).update({ n: 2 })
    const { code, stdout, stderr } = await runCommand(environment, ['verify'])
    expect({ code, lines: rowsOf(stdout) }).toEqual({
      code: 1,
      lines: [
        [
          'STATISTICS',
          'shop',
          '-',
          '-',
          expect.stringMatching(/ETH-BASE/),
          expect.stringMatching(/^2 ETH/),
          expect.stringMatching(/^1 ETH/),
        ],
      ],
    })
    expect(stderr).toContain('1 difference\nto repair: waybill verify --chain BASE --repair\n')
    expect(await runCommand(environment, ['verify', '--repair'])).toMatchObject({ code: 0, stdout })
    expect(await runCommand(environment, ['verify'])).toMatchObject({ code: 0, stdout: '' })
  })

  it('writes JSON, with the totals of the chain and of the accounts, and repairs all kinds of damage', async () => {
    await requestOf('partial').update({ status: 1 })
    await paidBy('token').delete()
    await paidBy('fiat').update({ amount: '24', invoice_amount: '24' })
    await paidBy('batch').where({ event_index: 2 }).update({ event_index: 5 })
    await knex('refunds').delete()
    await knex('unmatched_events').delete()
    const first = await runCommand(environment, ['verify', '--chain', 'BASE', '--json'])
    expect(first.code).toBe(1)
    const linesOf = (text: string) =>
      text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { kind?: string })
    const lines = linesOf(first.stdout)
    const status = { kind: 'REQUEST', account: 'shop', field: 'status', stored: 'OPEN', chain: 'PARTIALLY_PAID' }
    expect(lines).toContainEqual(expect.objectContaining(status))
    const [ofChain, ofAccounts] = lines.filter(({ kind }) => kind === undefined)
    const differences = lines.filter(({ kind }) => kind !== undefined)
    expect(ofChain).toMatchObject({ network: 'BASE', isEqual: false })
    expect(ofAccounts).toMatchObject({ accounts: [{ account: 'shop' }, { account: 'other' }] })
    const repaired = await runCommand(environment, ['verify', '--chain', 'BASE', '--json', '--repair'])
    expect(repaired.code).toBe(0)
    const changed = linesOf(repaired.stdout).filter(({ kind }) => kind !== undefined && kind !== 'STATISTICS')
    expect(changed).toEqual(
      expect.arrayContaining(differences.filter(({ kind }) => kind !== 'STATISTICS' && kind !== 'CHANGES')),
    )
    const [audited] = await knex('audit_log').where({ action: 'VERIFY_REPAIR', account: 'shop' })
    expect(audited).toMatchObject({ details: { chain: 'BASE' } })
    expect(await runCommand(environment, ['verify'])).toMatchObject({ code: 0, stdout: '' })
  })

  it('ends with 130 when it is stopped, says how to go on, and writes nothing that looks like a report', async () => {
    const file = join(folder, 'stopped.json')
    const through = { ...chain.config({ name: 'BASE', finalityDepth: 3 }), rpcUrls: [proxy.url] }
    await writeFile(file, JSON.stringify({ chains: [through] }))
    const words = ['verify', '--chain', 'BASE', '--to', '50', '--account', 'shop', '--json']
    const runUntil = (method: string) => {
      const stopping = new AbortController()
      proxy.meddle((call) => {
        if (call.method === method) stopping.abort(new Error('stopped by SIGINT'))
        return undefined
      })
      return runCommand({ ...environment, CHAINS_FILE: file }, words, stopping.signal)
    }
    const early = await runUntil('eth_chainId')
    expect(early).toEqual({ code: 130, stdout: '', stderr: 'stopped by SIGINT before the first block was read\n' })
    const later = await runUntil('eth_getBlockReceipts')
    expect(later).toMatchObject({ code: 130, stdout: '' })
    expect(later.stderr).toMatch(/^stopped by SIGINT: 0 of \d+ blocks read, none compared yet\n/)
    expect(later.stderr).toMatch(/to continue: waybill verify --chain BASE --from \d+ --to 50 --account shop\n$/)
  })

  it('ends with 3 where something could not be decided', async () => {
    const file = join(folder, 'lying.json')
    proxy.meddle(({ method }, ask) =>
      method === 'eth_getBlockReceipts'
        ? ask().then((receipts) => (receipts as object[]).map((receipt) => ({ ...receipt, logs: [] })))
        : undefined,
    )
    const lying = { ...chain.config({ name: 'BASE', finalityDepth: 3 }), rpcUrls: [proxy.url] }
    await writeFile(file, JSON.stringify({ chains: [lying] }))
    const { code, stderr } = await runCommand({ ...environment, CHAINS_FILE: file }, ['verify', '--chain', 'BASE'])
    expect(code).toBe(3)
    expect(stderr).toMatch(/block \d+: not provable: the receipts of 127\.0\.0\.1:\d+ do not have the root/)
  })

  it.each([
    [['verify', '--from', '1'], 2, 'name it with --chain'],
    [['verify', '--chain', 'NOWHERE'], 2, 'no chain "NOWHERE"'],
    [['verify', '--chain', 'BASE', '--from=-1'], 2, '--from is "-1"'],
    [['verify', '--chain', 'BASE', '--from', '0x10'], 2, '--from is "0x10"'],
    [['verify', '--chain', 'BASE', '--to', '1.5'], 2, '--to is "1.5"'],
    [['verify', '--chain', 'BASE', '--to', 'latest'], 2, '--to is "latest"'],
    [['verify', '--chain', 'BASE', '--from', '9', '--to', '8'], 2, '--from 9 is above --to 8'],
    [['verify', '--chain', 'BASE', '--account', ''], 2, '--account'],
    [['verify', '--chain', 'BASE', '--account', 'nobody'], 1, 'nobody'],
    [['verify', '--chain', 'BASE', '--from', '900000'], 1, 'no block of BASE from 900000 on'],
    [['verify', '--chain', 'BASE', 'more'], 2, 'more'],
  ])('%j is refused', async (words, code, mention) => {
    const outcome = await runCommand(environment, words)
    expect(outcome).toMatchObject({ code, stdout: '' })
    expect(outcome.stderr).toContain(mention)
  })
})
