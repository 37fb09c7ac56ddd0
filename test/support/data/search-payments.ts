import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { seededRandom } from '../../../bench/search/seeded-random.ts'
import { createChainDirectory } from '../../../src/chains/chain-directory.ts'
import type { ChainConfig } from '../../../src/chains/chains-file.ts'
import { createTokenDirectory } from '../../../src/chains/token-directory.ts'
import { type Address, parseAddress } from '../../../src/domain/address.ts'
import type { DecimalString } from '../../../src/domain/decimal.ts'
import { type Hex } from '../../../src/domain/hex.ts'
import {
  type Payment,
  type PaymentFee,
  type PaymentRefund,
  paymentStatuses,
  paymentTypes,
} from '../../../src/domain/payment.ts'
import type { Metadata } from '../../../src/domain/payment-request.ts'
import { lockAccount, lockAccounts } from '../../../src/store/payment-changes.ts'
import { rowOfPayment } from '../../../src/store/payment-row.ts'
import { insertPayments as insertCounted } from './write-payments.ts'

/** Payments of a seeded generator, with ties, unknown values and odd names, on which an order or a filter may fail. */

function address(text: string): Address {
  const parsed = parseAddress(text)
  if (!parsed.ok) throw new Error(`${text}: ${parsed.detail}`)
  return parsed.address
}

const evmAddress = (n: number) => address(`0x${n.toString(16).padStart(40, 'a1')}`)

export const PAYEES = [evmAddress(1), evmAddress(2), address('TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t')]
export const PAYERS = [evmAddress(11), evmAddress(12), evmAddress(1), address('TJRabPrwbZy45sbavfcjinPJC18kjpRTv8')]
const TOKEN_ADDRESS = evmAddress(99)

const chain = (name: string, chainId: number, symbol: string, tokens: readonly string[]): ChainConfig => ({
  name,
  chainId,
  rpcUrls: ['http://127.0.0.1:1'],
  multicall: evmAddress(50),
  native: { symbol, decimals: 18 },
  tokens: tokens.map((token, at) => ({ symbol: token, address: evmAddress(60 + at), decimals: 6 })),
  contracts: [],
  finality: { useFinalizedTag: false, depth: 5 },
  blockTimeSeconds: 2,
})

/** POLYGON has a private chain id, as in a demo: its real id names a chain that is not configured. */
const configs = [
  chain('BASE', 8453, 'ETH', ['USDC', 'DAI']),
  chain('POLYGON', 31337002, 'POL', ['USDC', 'USDC.e']),
  chain('ARBITRUM', 42161, 'ETH', ['USDC']),
]
export const chains = createChainDirectory(configs)
export const tokens = createTokenDirectory(configs)

/** Symbol, chain. The last two are known from imports alone. */
const CURRENCIES = [
  ['USDC-BASE', 'BASE'],
  ['USDC-BASE', 'BASE'],
  ['USDC-POLYGON', 'POLYGON'],
  ['USDC.e-POLYGON', 'POLYGON'],
  ['DAI-BASE', 'BASE'],
  ['ETH-ARBITRUM', 'ARBITRUM'],
  ['USDT-TRON', 'TRON'],
  ['Odd-coin-MOON_9', 'MOON_9'],
] as const
const INVOICE_CURRENCIES = ['USD', 'EUR', 'POINTS', 'USDC-BASE', 'USDC-OLDNET', 'USDC-x-BASE']
/** Ties, zero, the smallest and a large one; `10.50` as an import may have written it. */
const AMOUNTS: readonly DecimalString[] = [
  '0',
  '0.000000000000000001',
  '1',
  '1.5',
  '10',
  '10.50',
  '100',
  '250.75',
  '99999999999999999999999.5',
]
export const REFERENCES = ['INV-1', 'INV-2', 'a,b', 'Ünï ✓', "o'; drop table payments; --", '%', 'INV-1 ']
export const REQUEST_IDS = [1, 2, 3, 4, 5].map((n) => `01${n.toString(16).padStart(64, '0')}`)
export const PAYMENT_REFERENCES = [1, 2, 3, 4, 5].map((n): Hex => `0x${n.toString(16).padStart(16, '0')}`)
export const START = Date.UTC(2026, 2, 1)
const HOUR = 3_600_000

export const hash = (n: number): Hex => `0x${createHash('sha256').update(`tx ${n}`).digest('hex')}`

export interface StoredPayment {
  readonly accountId: number
  readonly final: boolean
  readonly payment: Payment
}

/** Makes `count` payments of an account. */
export function generatePayments(accountId: number, count: number, seed: number): StoredPayment[] {
  const random = seededRandom(seed)
  const one = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T
  const maybe = <T>(share: number, value: () => T): T | undefined => (random() < share ? value() : undefined)
  return Array.from({ length: count }, (_, n) => {
    const [currency, home] = one(CURRENCIES)
    const hours = Math.floor(random() * 400)
    // one network that only the oldest quarter has
    const network = hours < 100 && random() < 0.2 ? 'OLDNET' : home
    const invoiceCurrency = maybe(0.8, () => one(INVOICE_CURRENCIES))
    const status = random() < 0.6 ? 'CONFIRMED' : one(paymentStatuses)
    const type = maybe(0.9, () => one(paymentTypes))
    // batches of ten share a transaction; some imports know none
    const txHash = maybe(0.9, () => hash(Math.floor(n / 10) % 60))
    const chainId = chains.chainIdOf(network)
    return {
      accountId,
      final: status !== 'PENDING',
      payment: present({
        id: uuid(random),
        status,
        type,
        timestamp: new Date(START + hours * HOUR),
        updatedAt: new Date(START + 500 * HOUR + n),
        amount: one(AMOUNTS),
        currency,
        amountInUsd: maybe(0.8, () => one(AMOUNTS)),
        invoiceAmount: invoiceCurrency === undefined ? undefined : maybe(0.7, () => one(AMOUNTS)),
        invoiceCurrency,
        network,
        chainId,
        txHash,
        eventIndex: txHash === undefined ? undefined : n,
        blockNumber: maybe(0.9, () => BigInt(1000 + hours)),
        sourceNetwork: maybe(0.3, () => one(['BASE', 'ARBITRUM', 'SOURCEONLY'])),
        sourceTxHash: maybe(0.2, () => hash(Math.floor(random() * 100))),
        payer: maybe(0.9, () => one(PAYERS)),
        payee: maybe(0.95, () => one(PAYEES)),
        initiator: maybe(0.9, () => one(PAYERS)),
        tokenAddress: maybe(0.7, () => TOKEN_ADDRESS),
        requestId: maybe(0.5, () => one(REQUEST_IDS)),
        paymentReference: maybe(0.5, () => one(PAYMENT_REFERENCES)),
        reference: maybe(0.5, () => one(REFERENCES)),
        fees: [
          { type: 'PLATFORM', stage: 'SENDING', amount: '0.5', currency, receiverAddress: PAYEES[0] as string },
          ...(n % 3 === 0 ? [gasFee] : []),
        ],
        marks: [],
        metadata: n % 4 === 0 ? undefined : metadataOf(n),
        exchangeRates: [],
        gas: maybe(0.5, () => ({ used: '21000', amount: '0.001', currency: n % 2 === 0 ? 'ETH-BASE' : 'POL-POLYGON' })),
        refunds: n % 9 === 0 ? [refundOf(n, currency, network)] : [],
        refundedAmount: n % 9 === 0 ? '0.1' : '0',
        statusHistory: [{ status, at: new Date(START + hours * HOUR).toISOString() }],
        confirmations: status === 'PENDING' ? undefined : maybe(0.9, () => 64),
      }),
    }
  })
}

/** Values that are frequent, rare, or have characters of their own. The keys are in the order that PostgreSQL gives them. */
function metadataOf(n: number): Metadata {
  return {
    ...(n % 5 === 0 && { order: String(n % 50) }),
    ...(n % 7 === 0 && { 'a.b-C_9': 'x=y, "z" %' }),
    channel: n % 3 === 0 ? 'web' : 'pos',
  }
}

function refundOf(n: number, currency: string, network: string): PaymentRefund {
  const entry = { amount: '0.1', currency, network, txHash: hash((n * 7) % 100), eventIndex: n } as const
  return { ...entry, recipient: PAYERS[n % 3] as Address, ...(n % 2 === 0 ? { excess: true } : {}) }
}

const gasFee: PaymentFee = {
  type: 'GAS',
  stage: 'SENDING',
  amount: '0.000000000000000001',
  currency: 'ETH-ETHEREUM',
  amountInUsd: '0.01',
}

function uuid(random: () => number): string {
  const hex = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join('')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

type Optional<T> = { [K in keyof T]: T[K] | undefined }

function present(payment: Optional<Payment>): Payment {
  return Object.fromEntries(Object.entries(payment).filter(([, value]) => value !== undefined)) as unknown as Payment
}

/** Stores payments, counted and logged as all writers do. */
export async function insertPayments(knex: Knex, stored: readonly StoredPayment[]): Promise<void> {
  const byAccount = Map.groupBy(stored, ({ accountId }) => accountId)
  await knex.transaction(async (trx) => {
    for (const account of await lockAccounts(trx, [...byAccount.keys()], new Date(START))) {
      const rows = byAccount.get(account.accountId) ?? []
      for (let at = 0; at < rows.length; at += 500) {
        await insertCounted(
          account,
          trx('payments')
            .insert(rows.slice(at, at + 500).map(rowOf))
            .toSQL(),
        )
      }
    }
  })
}

/** Gives payments stamps as many transactions would have, some of several payments. Returns the payments with theirs. */
export async function spreadStamps(knex: Knex, accountId: number, payments: readonly Payment[]): Promise<Payment[]> {
  const stamped = payments.map((payment, n): Payment => {
    const changedAt = new Date(START + 600 * HOUR + ((Math.floor(n / 3) * 7_919) % 100_003) * 1_000 + (n % 2))
    return { ...payment, changedAt }
  })
  const [ids, stamps] = [stamped.map(({ id }) => id), stamped.map(({ changedAt }) => changedAt as Date)]
  for (const table of ['payments', 'payment_metadata']) {
    await knex.raw(
      `update ${table} p set changed_at = given.at from unnest(?::uuid[], ?::timestamptz[]) as given (id, at)
       where p.account_id = ? and p.id = given.id`,
      [ids, stamps, accountId],
    )
  }
  await knex.raw(
    `update payment_changes c set at = p.changed_at from payments p
     where c.account_id = ? and p.account_id = c.account_id and p.id = c.payment_id`,
    [accountId],
  )
  await knex.raw(
    `update account_changes set last_changed_at = (select max(changed_at) from payments where account_id = ?) where account_id = ?`,
    [accountId, accountId],
  )
  return stamped
}

/** Stores the payments of an INSERT into one account, counted and logged as well. */
export async function insertBySql(knex: Knex, accountId: number, sql: string): Promise<void> {
  await knex.transaction(async (trx) => {
    await insertCounted(await lockAccount(trx, accountId, new Date(START)), { sql, bindings: [] })
  })
}

function rowOf({ accountId, final, payment }: StoredPayment) {
  const origin = {
    account_id: accountId,
    final,
    imported: true,
    detected: false,
    line_hash: null,
    line_updated_at: null,
  }
  const row = rowOfPayment(payment, origin)
  return {
    ...row,
    // As JSON: the driver would turn a list into a PostgreSQL array.
    fees: JSON.stringify(row.fees),
    exchange_rates: JSON.stringify(row.exchange_rates),
    gas: row.gas && JSON.stringify(row.gas),
    refunds: JSON.stringify(row.refunds),
    status_history: JSON.stringify(row.status_history),
  }
}
