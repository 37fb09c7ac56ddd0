/**
 * The whole service over real chains, spoken to as its callers do: JSON over HTTP, with real keys. Detection looks at the chains
 * when a test says so (`scan`), so that each state between is seen.
 */
import type { Knex } from 'knex'
import { type Address, getAddress, type Hex, keccak256, toBytes } from 'viem'
import { expect } from 'vitest'
import {
  encodeApprove,
  encodeErc20Payment,
  encodeNativePayment,
  ZERO_ADDRESS,
} from '../../../demo/network/demo-contracts.ts'
import { composeService } from '../../../src/app.ts'
import { issueApiKey } from '../../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../../src/auth/sql/api-key-repository.ts'
import type { ChainConfig } from '../../../src/chains/chains-file.ts'
import type { Detection } from '../../../src/detection/detection.ts'
import { parseAmount } from '../../../src/domain/decimal.ts'
import { findDifferences } from '../data/ledger.ts'
import { silentLogger } from '../logs.ts'
import type { Paid, TestChain } from './chain.ts'

export interface RequestJson {
  requestId: string
  salt: string
  paymentReference: Hex
  payee: Address
  amount: string
  status: string
  paidAmount: string
  pendingAmount: string
  outstandingAmount: string
  overpaidAmount: string
}

interface FeeLineJson {
  type: string
  amount: string
  currency: string
  amountInFeeCurrency?: string
}

interface RouteJson {
  id: string
  fee: number
  sourceAmount: string
  feeAmount: string
  feeBreakdown: FeeLineJson[]
  readiness: { hasEnoughGas?: boolean; needsApproval: boolean; steps: string[] }
}

interface RoutesJson {
  routes: RouteJson[]
  amount: string
  currency: string
  warnings: { reason: string; message: string }[]
  unavailable: { chain?: string; token?: string; reason: string; message: string; remedy: string }[]
  degraded: boolean
}

export interface PaymentJson {
  id: string
  status: string
  completed: boolean
  confirmations: number
  type: string
  timestamp: string
  updatedAt: string
  changedAt: string
  amount: string
  currency: string
  amountInUSD: string
  invoiceAmount: string
  invoiceCurrency: string
  network: string
  txHash: Hex
  blockNumber: string
  eventIndex: number
  payer: Address
  payee: Address
  fees: FeeLineJson[]
  gas: { used: string; price: string; amount: string; currency: string }
  refunds: { amount: string; currency: string; txHash: string }[]
  refundedAmount: string
  statusHistory: { status: string; at: string }[]
  marks: string[]
}

/** Terms of a request as a caller sends them; what is left out is USDC on BASE. */
export interface Terms {
  payee: string
  amount: string
  invoiceCurrency?: string
  paymentCurrency?: string
  network?: string
  reference?: string
  refundAddress?: string
  allowedPayers?: readonly string[]
  requestId?: string
  salt?: string
}

export type Query = Readonly<Record<string, string | readonly string[]>>

interface Answer {
  status: number
  body: unknown
}

/** A caller with a key. All but `call` and `reasonOf` throw the service's answer when it is an error. */
export interface Caller {
  readonly key: string
  readonly accountId: number
  call(method: string, path: string, options?: { query?: Query; body?: object }): Promise<Answer>
  /** HTTP status and reason of an answer that must be an error. */
  reasonOf(path: string, query?: Query): Promise<[status: number, reason: string]>
  createRequest(terms: Terms): Promise<RequestJson>
  request(paymentReference: string): Promise<RequestJson>
  routes(paymentReference: string, query: Query): Promise<RoutesJson>
  /** One page. */
  search(query: Query): Promise<{ payments: PaymentJson[]; asOf: { network: string; block?: string }[] }>
  /** Payments of a request in the order of the chain, where blocks may share a second. */
  paymentsOf(request: { paymentReference: string }): Promise<PaymentJson[]>
}

export interface LifeService {
  readonly knex: Knex
  readonly detection: Detection
  readonly baseUrl: string
  /** Moves the service's clock forward. Deadlines of calls go by the machine's clock, so ask for no routes after that. */
  passTime(ms: number): void
  /** The time of the service. */
  now(): Date
  /** Follows all chains, or one, up to their heads. */
  scan(network?: string): Promise<void>
  /** A caller with a key of all of an account's scopes. */
  caller(account: string): Promise<Caller>
  /** Why events with the request's reference were not matched, for an account. */
  unmatchedOf(caller: Caller, request: { paymentReference: Hex }): Promise<string[]>
  stop(): Promise<void>
  /** Ends like a process that was killed: nothing is finished. */
  abandon(): Promise<void>
}

/** Puts the service together on a migrated database and lets it listen on any free port of loopback. */
export async function startLifeService(
  knex: Knex,
  chains: readonly ChainConfig[],
  compose: typeof composeService = composeService,
): Promise<LifeService> {
  let aheadMs = 0
  const now = () => new Date(Date.now() + aheadMs)
  const service = await compose({ knex, chains, logger: silentLogger, now })
  const listener = await service.listen({ host: '127.0.0.1', port: 0 })
  return {
    knex,
    detection: service.detection,
    baseUrl: listener.url,
    passTime: (ms) => {
      aheadMs += ms
    },
    now,
    scan: (network) => service.detection.scanOnce(network),
    async caller(account) {
      const scopes = ['routes:read', 'payments:read', 'requests:read', 'requests:write'] as const
      const terms = { account, scopes, now: now(), callsPerMinute: 0 }
      const { key, stored } = await issueApiKey(createApiKeyRepository(knex), terms)
      return createCaller(listener.url, key, stored.account.id)
    },
    unmatchedOf: ({ accountId }, { paymentReference }) =>
      knex('unmatched_events')
        .where({ account_id: accountId, topic: Buffer.from(keccak256(paymentReference).slice(2), 'hex') })
        .orderBy(['block_number', 'event_index'])
        .pluck('reason'),
    abandon: () => listener.stop({ graceMs: 0 }),
    async stop() {
      await service.detection.stop()
      await listener.stop({ graceMs: 1_000 })
      // The ledger agrees with the rows, whatever the test did.
      expect(await findDifferences(knex)).toEqual([])
    },
  }
}

function createCaller(baseUrl: string, key: string, accountId: number): Caller {
  const call: Caller['call'] = async (method, path, { query = {}, body } = {}) => {
    const pairs = Object.entries(query).flatMap(([name, value]) => [value].flat().map((each) => [name, each] as const))
    const text = new URLSearchParams(pairs.map(([name, value]) => [name, value])).toString()
    const response = await fetch(`${baseUrl}${path}${text === '' ? '' : `?${text}`}`, {
      method,
      headers: {
        'x-api-key': key,
        'cache-control': 'no-cache',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: await response.json() }
  }
  async function succeed<T>(method: string, path: string, options?: Parameters<typeof call>[2]): Promise<T> {
    const { status, body } = await call(method, path, options)
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`)
    return body as T
  }
  return {
    key,
    accountId,
    call,
    async reasonOf(path, query = {}) {
      const { status, body } = await call('GET', path, { query })
      const { details } = body as { details?: { reason?: string }[] }
      return [status, details?.[0]?.reason ?? `none: ${JSON.stringify(body)}`]
    },
    createRequest(terms) {
      const { network = 'BASE', paymentCurrency = 'USDC' } = terms
      const body = { invoiceCurrency: paymentCurrency, ...terms, network, paymentCurrency }
      return succeed('POST', '/v1/request', { body })
    },
    request: (paymentReference) => succeed('GET', `/v1/request/${paymentReference}`),
    routes: (paymentReference, query) => succeed('GET', `/v1/request/${paymentReference}/routes`, { query }),
    search: (query) => succeed('GET', '/payments', { query }),
    async paymentsOf({ paymentReference }) {
      const query = { paymentReference, limit: '100' }
      const { payments } = await succeed<{ payments: PaymentJson[] }>('GET', '/payments', { query })
      return payments.toSorted((a, b) => Number(a.blockNumber) - Number(b.blockNumber) || a.eventIndex - b.eventIndex)
    },
  }
}

/** An address that nobody has used, the same for the same seed; in EIP-55. */
export function freshAddress(seed: string): Address {
  return getAddress(`0x${keccak256(toBytes(seed)).slice(-40)}`)
}

/** A wallet of its own with 100 coins, unlocked in the node. */
export async function newWallet(chain: TestChain, seed: string): Promise<Address> {
  const wallet = freshAddress(`wallet ${seed}`)
  await chain.setNativeBalance(wallet, 100n * 10n ** 18n)
  await chain.client.rpc.call('anvil_impersonateAccount', [wallet])
  return wallet
}

/** Base units of a decimal string. */
export function units(text: string | undefined, decimals: number): bigint {
  const value = parseAmount(text ?? '0', decimals)
  if (value === undefined) throw new Error(`not an amount of ${decimals} decimals: ${text}`)
  return value
}

export const feeLine = (route: RouteJson, type: string) => route.feeBreakdown.find((line) => line.type === type)

/** What a wallet needs to take a quoted direct route: nothing but the service's own answers. */
interface QuotedPayment {
  readonly chain: TestChain
  readonly wallet: Address
  readonly request: RequestJson
  readonly quoted: RoutesJson
  /** The token; absent: the chain's coin. */
  readonly token?: { readonly address: Address; readonly decimals: number }
  readonly feeAddress?: Address
  /** Wei for a unit of gas; default what the node's accounts usually pay. */
  readonly gasPrice?: bigint
}

/**
 * Takes the first quoted route as it is quoted: its steps in order, the exact allowance, the amount and the fee.
 *
 * @returns what was sent, in order; the last is the payment
 */
export async function payAsQuoted(payment: QuotedPayment): Promise<Required<Paid>[]> {
  const { chain, wallet, request, quoted, token, feeAddress = ZERO_ADDRESS, gasPrice } = payment
  const price = gasPrice === undefined ? {} : { maxFeePerGas: gasPrice, maxPriorityFeePerGas: gasPrice }
  const [route] = quoted.routes
  if (route === undefined) throw new Error('no route was quoted')
  const decimals = token?.decimals ?? 18
  const { erc20FeeProxy, ethereumFeeProxy } = chain.contracts
  const terms = {
    to: request.payee,
    amount: units(quoted.amount, decimals),
    paymentReference: request.paymentReference,
    feeAmount: units(feeLine(route, 'PLATFORM')?.amount, decimals),
    feeAddress,
  }
  const calls: Record<string, Parameters<TestChain['send']>[1]> = {
    PAY: token
      ? encodeErc20Payment(erc20FeeProxy, token.address, terms)
      : { ...encodeNativePayment(ethereumFeeProxy, terms, true), value: units(route.sourceAmount, decimals) },
    ...(token && { APPROVE: encodeApprove(token.address, erc20FeeProxy, units(route.sourceAmount, decimals)) }),
  }
  const sent: Required<Paid>[] = []
  for (const step of route.readiness.steps) {
    const call = calls[step]
    if (call === undefined) throw new Error(`the step ${step} cannot be taken`)
    sent.push((await chain.send(wallet, call, price)) as Required<Paid>)
  }
  return sent
}

/** Wei a unit of gas costs in the next block with the tip that the node suggests, which is what wallets pay. */
export async function gasPriceNow(chain: TestChain): Promise<bigint> {
  const history = await chain.client.rpc.call<{ baseFeePerGas: string[] }>('eth_feeHistory', ['0x5', 'latest', []])
  return (
    BigInt(history.baseFeePerGas.at(-1) ?? 0) + BigInt(await chain.client.rpc.call<string>('eth_maxPriorityFeePerGas'))
  )
}

/** An identifier of the same form with another last digit. */
export function nearMiss(hex: string): string {
  return `${hex.slice(0, -1)}${hex.endsWith('7') ? '8' : '7'}`
}
