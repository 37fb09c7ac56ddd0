/** A chain that is computed, not mined: every block, transaction, log and receipt follows from its number. */
import { createHash } from 'node:crypto'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { eventTopics, type RpcLog } from '../../src/contracts/decode-events.ts'
import type { Address } from '../../src/domain/address.ts'
import { readStoredDecimal } from '../../src/domain/decimal.ts'
import type { Hex } from '../../src/domain/hex.ts'
import { paymentReferenceOf, topicOfReference } from '../../src/domain/identifiers.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'

/** Where the payments of a chain are. */
export interface BenchSize {
  /** The head when the node starts. */
  readonly head: number
  /** Payments in all, one a transaction. They are in the blocks from 1 on. */
  readonly events: number
  readonly eventsABlock: number
  /** How long the node takes for the logs of a range; default 0. */
  readonly rangeMs?: number
}

export const BENCH_CHAIN_ID = 31_499
const GENESIS_SEC = 1_700_000_000
const SECONDS_A_BLOCK = 2

const address = (text: string): Address => `0x${hashOf(text).slice(26)}` as Address
const PROXY = address('fee proxy')
const TOKEN = address('token')
const FEE_ADDRESS = address('fee')

function hashOf(text: string): Hex {
  return `0x${createHash('sha256').update(text).digest('hex')}`
}

const quantity = (value: number | bigint): Hex => `0x${value.toString(16)}`
const word = (value: bigint): string => value.toString(16).padStart(64, '0')
const wordOf = (of: Address): string => of.slice(2).padStart(64, '0')

/** The chain as a chains file describes it. */
export function benchConfig(rpcUrls: readonly string[], options: Partial<ChainConfig> = {}): ChainConfig {
  return {
    name: 'BENCH',
    chainId: BENCH_CHAIN_ID,
    rpcUrls,
    multicall: address('multicall'),
    native: { symbol: 'ETH', decimals: 18 },
    tokens: [{ symbol: 'USDC', address: TOKEN, decimals: 6, pegUsd: '1' }],
    contracts: [{ kind: 'ERC20_FEE_PROXY', version: '0.2.0', address: PROXY, fromBlock: 0 }],
    startBlock: 0,
    finality: { useFinalizedTag: false, depth: 3 },
    blockTimeSeconds: SECONDS_A_BLOCK,
    ...options,
  }
}

/** The request that the payment with a number pays in full. */
export function benchRequest(n: number): PaymentRequest {
  const digest = hashOf(`request ${n}`).slice(2)
  const requestId = `01${digest}`
  const salt = digest.slice(0, 16)
  const payee = address(`payee ${n % 200}`)
  return {
    requestId,
    salt,
    paymentReference: paymentReferenceOf(requestId, salt, payee),
    payee,
    amount: readStoredDecimal(`${n % 1_000}.25`),
    invoiceCurrency: 'USDC-BENCH',
    paymentCurrency: 'USDC-BENCH',
    network: 'BENCH',
    reference: `INV-${n}`,
    createdAt: new Date(GENESIS_SEC * 1_000),
  }
}

export function benchBlock(number: number) {
  return {
    number: quantity(number),
    hash: hashOf(`block ${number}`),
    parentHash: hashOf(`block ${number - 1}`),
    timestamp: quantity(GENESIS_SEC + number * SECONDS_A_BLOCK),
    transactions: [],
  }
}

/** Where the payment with a number is. */
export function benchPlace({ eventsABlock }: BenchSize, n: number) {
  return { block: 1 + Math.floor(n / eventsABlock), place: n % eventsABlock }
}

/** The receipt of the payment with a number, as a node gives it: the token's transfers of payment and fee, then the proxy's event. */
export function benchReceipt(n: number, { block: number, place }: ReturnType<typeof benchPlace>) {
  const { payee, paymentReference } = benchRequest(n)
  const payer = address(`payer ${n % 5_000}`)
  const amount = BigInt(n % 1_000) * 1_000_000n + 250_000n
  const shared = {
    blockNumber: quantity(number),
    blockHash: hashOf(`block ${number}`),
    blockTimestamp: quantity(GENESIS_SEC + number * SECONDS_A_BLOCK),
    transactionHash: hashOf(`transaction ${n}`),
    transactionIndex: quantity(place),
    removed: false,
  }
  const transfer = (to: Address, value: bigint, index: number) => ({
    ...shared,
    address: TOKEN,
    topics: [eventTopics.transfer, `0x${wordOf(payer)}`, `0x${wordOf(to)}`],
    data: `0x${word(value)}`,
    logIndex: quantity(place * 3 + index),
  })
  const paid = {
    ...shared,
    address: PROXY,
    topics: [eventTopics.erc20Payment, topicOfReference(paymentReference)],
    data: `0x${wordOf(TOKEN)}${wordOf(payee)}${word(amount)}${word(1_000n)}${wordOf(FEE_ADDRESS)}`,
    logIndex: quantity(place * 3 + 2),
  }
  return {
    ...shared,
    from: payer,
    to: PROXY,
    status: '0x1',
    type: '0x2',
    contractAddress: null,
    cumulativeGasUsed: quantity(90_000 * (place + 1)),
    gasUsed: quantity(80_000 + (n % 10_000)),
    effectiveGasPrice: quantity(1_000_000_000 + n),
    logsBloom: `0x${'00'.repeat(256)}`,
    logs: [transfer(payee, amount, 0), transfer(FEE_ADDRESS, 1_000n, 1), paid] satisfies RpcLogJson[],
  }
}

type RpcLogJson = Omit<RpcLog, 'topics'> & { readonly topics: readonly string[] }
