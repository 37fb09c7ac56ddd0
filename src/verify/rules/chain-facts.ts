import type { ChainConfig } from '../../chains/chains-file.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import { currencyHash } from '../../contracts/currency-hash.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import type { Hex } from '../../domain/hex.ts'
import type { ChainNodes } from '../read/chain-nodes.ts'
import { readFrames } from '../read/read-frames.ts'
import type { Header } from '../read/read-headers.ts'
import type { Receipt } from '../read/read-receipts.ts'
import { readSentCall } from '../read/read-sent-call.ts'
import { type CoinPayer, isPlainCall, payerOfPlainCall, payersOfCall, payersOfFrames } from './coin-payers.ts'
import { judgeConversion, type RateVerdict } from './conversion-rates.ts'
import type { KnownContracts } from './known-contracts.ts'
import { findTokenPayers } from './token-payers.ts'
import type { PaymentEvent, ReadLogs } from './transaction-events.ts'

/** A payment event, and everything that the chain says of it, whichever account it belongs to. */
export interface EventFact extends CoinPayer {
  readonly txHash: Hex
  readonly blockNumber: number
  readonly timestampSec: number
  readonly event: PaymentEvent
  readonly initiator: Address
  /** What the transaction cost its sender, in wei. */
  readonly gas: Pick<Receipt, 'gasUsed' | 'effectiveGasPrice' | 'l1Fee' | 'isDeposit'>
  /** The token that was paid with; absent where the chains file does not list it. */
  readonly token?: Token | undefined
  /** The verdict on a conversion's rate; absent for other events. */
  readonly rate?: RateVerdict | undefined
  /** Transfers of the event's token to the fee address that no event claims. Absent for coins, whose moves only a trace shows. */
  readonly feesBeside?: readonly bigint[] | undefined
  /** Why the payer may be unknown here although the service found it. */
  readonly payerDoubt?: 'NO_TRACE' | undefined
}

/** A transaction with followed events. */
export interface SeenTransaction {
  readonly header: Header
  readonly receipt: Receipt
  readonly logs: ReadLogs
}

/** What {@link completeFacts} needs. */
export interface FactTools {
  readonly chain: ChainConfig
  readonly tokens: TokenDirectory
  readonly nodes: ChainNodes
  readonly contracts: KnownContracts
}

/** Completes the events of a transaction: who paid, with which token, and whether the rates of conversions count. */
export async function completeFacts(tools: FactTools, seen: SeenTransaction): Promise<EventFact[]> {
  const { header, receipt, logs } = seen
  const tokenPayers = findTokenPayers(logs.events, logs.transfers, tools.contracts)
  const coins = logs.events.filter(({ token }) => token === undefined)
  const { payers: coinPayers, doubt } = await findCoinPayers(tools, coins, seen)
  const facts: EventFact[] = []
  for (const event of logs.events) {
    const isToken = event.token !== undefined
    const paidBy = isToken
      ? tokenPayer(event, tokenPayers, tools)
      : (coinPayers.get(event.eventIndex) ?? { isCarried: false })
    facts.push({
      ...paidBy,
      txHash: receipt.txHash,
      blockNumber: header.number,
      timestampSec: header.timestampSec,
      event,
      initiator: receipt.from,
      gas: receipt,
      token: tokenOf(tools, event),
      rate: await rateOf(tools, event, header),
      feesBeside: isToken ? feesBeside(event, logs) : undefined,
      payerDoubt: isToken ? undefined : doubt,
    })
  }
  return facts
}

function tokenPayer(event: PaymentEvent, payers: ReadonlyMap<number, Address>, { contracts }: FactTools): CoinPayer {
  const payer = payers.get(event.eventIndex)
  const from = event.claimed?.from
  if (from === undefined) return { payer, isCarried: false }
  const isPassing = contracts.isIntermediary(from) || contracts.isSwap(from) || contracts.isExecutor(from)
  return { payer, paidFrom: isPassing ? undefined : from, isCarried: contracts.isExecutor(from) }
}

async function findCoinPayers(
  { nodes, contracts }: FactTools,
  coins: readonly PaymentEvent[],
  { receipt, logs }: SeenTransaction,
): Promise<{ payers: ReadonlyMap<number, CoinPayer>; doubt?: 'NO_TRACE' }> {
  if (coins.length === 0) return { payers: new Map() }
  if (isPlainCall(coins, receipt)) {
    return { payers: new Map(coins.map((event) => [event.eventIndex, payerOfPlainCall(receipt, contracts)])) }
  }
  const frames = await readFrames(nodes, receipt.txHash)
  if (frames !== undefined) return { payers: payersOfFrames(coins, frames, contracts) }
  const sent = await readSentCall(nodes, receipt.txHash)
  if (receipt.to === undefined || sent === undefined) return { payers: new Map(), doubt: 'NO_TRACE' }
  const call = { caller: receipt.from, to: receipt.to, ...sent }
  return { payers: payersOfCall(logs.events, call, contracts), doubt: 'NO_TRACE' }
}

function feesBeside({ token, feeAddress }: PaymentEvent, { unclaimed }: ReadLogs): bigint[] {
  return unclaimed.filter((each) => each.token === token && each.to === feeAddress).map(({ value }) => value)
}

function tokenOf({ tokens, chain }: FactTools, { token }: PaymentEvent): Token | undefined {
  return token === undefined ? tokens.native(chain.name) : tokens.byAddress(chain.name, token)
}

async function rateOf(
  tools: FactTools,
  event: PaymentEvent,
  { number, timestampSec }: Header,
): Promise<RateVerdict | undefined> {
  const { conversion } = event
  const token = tokenOf(tools, event)
  if (conversion === undefined || token === undefined) return undefined
  const paths = tools.chain.conversion?.paths ?? []
  const path = paths.find(
    ({ from, token: symbol }) => symbol === token.symbol && currencyHash('iso4217', from) === conversion.currency,
  )
  if (path === undefined) return 'RATE_OFF'
  const asked = { invoiced: conversion.amount, paid: event.amount, blockNumber: number, timestampSec }
  return judgeConversion(tools.nodes, tools.chain, { ...asked, from: path.from, token })
}
