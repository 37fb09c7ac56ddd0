/**
 * What tests in any language do to the demo: the methods of DemoService. Each acts by the interfaces that a shop has, the API and the nodes,
 * and by the clocks and the bridge, then waits until the service has found the effect.
 */
import type { Hex } from 'viem'
import { chunksOf } from '../../src/domain/collections.ts'
import { parseAmount } from '../../src/domain/decimal.ts'
import { suggestName } from '../../src/domain/nearest.ts'
import { waybillError } from '../../src/errors/waybill-error.ts'
import type { BridgeFault } from '../bridge/bridge.ts'
import type { DemoControls } from '../demo.ts'
import { type FoundPayment, findDemoChain, openDemo, type RunningDemo, waitFor } from '../running-demo.ts'
import { findRefunded, refundPayment } from './refund-payment.ts'
import { readCalldata, sendAll } from './route-payment.ts'
import { createWalletQueues, type Enqueue } from './wallet-queues.ts'

interface Head {
  readonly network: string
  readonly block: bigint
  readonly time: Date
}

/** What a method did. */
export interface Effect {
  readonly seen: boolean
  readonly notSeenBecause?: string
  readonly txHashes?: string[]
  readonly payments?: readonly FoundPayment[]
  readonly removedPayments?: string[]
  readonly heads?: readonly Head[]
}

/** Who acts, and how long effects are waited for. */
export interface Acting {
  /** The headers that say who calls. */
  readonly caller: Readonly<Record<string, string>>
  readonly waitSeconds?: number | undefined
}

type Chain = DemoControls['chains'][number]
type Optional<T> = { readonly [K in keyof T]?: T[K] | undefined }

const USUAL_WAIT_SECONDS = 30
/** Longer than any call waits; what was begun does not depend on the caller. */
const MAX_ACTION_MS = 120_000
const FEED_DECIMALS = 8
const MAX_PRICE = 10n ** BigInt(9 + FEED_DECIMALS)
/** Of values of one filter of a search. */
const MAX_VALUES = 100

type Opened = ReturnType<typeof open> & { readonly enqueue: Enqueue }

/** @param readControls - resolves once the service listens */
export function createSandbox(readControls: () => Promise<DemoControls>) {
  const enqueue = createWalletQueues()
  const by =
    <T>(act: (opened: Opened, terms: T) => Promise<Effect>) =>
    async (terms: T, acting: Acting) =>
      act({ ...open(await readControls(), acting), enqueue }, terms)
  return {
    pay: by(pay),
    refund: by(refund),
    reorg: by(reorg),
    mine: by(mine),
    failBridge: by(failBridge),
    movePrice: by(movePrice),
    moveClock: by(moveClock),
  }
}

function open(controls: DemoControls, { caller, waitSeconds = USUAL_WAIT_SECONDS }: Acting) {
  const signal = AbortSignal.timeout(MAX_ACTION_MS)
  return { ...controls, signal, timeoutMs: waitSeconds * 1_000, demo: openDemo(controls.file, caller, signal) }
}

async function pay(
  { demo, bridge, signal, timeoutMs, file, enqueue }: Opened,
  terms: { readonly paymentReference: string; readonly wallet: string } & Optional<Record<'route' | 'amount', string>>,
): Promise<Effect> {
  const { paymentReference, amount } = terms
  const named = Object.entries(file.wallets).find(
    ([name, { address }]) => name === terms.wallet || address.toLowerCase() === terms.wallet.toLowerCase(),
  )
  const wallet = named?.[1].address
  if (wallet === undefined) throw unknown('wallet', terms.wallet, Object.keys(file.wallets))
  const asked = { wallet, ...(amount !== undefined && { amount }) }
  const txHashes = await enqueue(wallet, async () => {
    const route = terms.route ?? (await findCheapest(demo, paymentReference, asked))
    const calldata = await readCalldata(demo, paymentReference, { ...asked, ...(route !== undefined && { route }) })
    return sendAll(demo.rpcOf(findDemoChain(demo, calldata.route.chainId)), calldata, signal)
  })
  const hash = txHashes.at(-1) ?? ''
  const read = async () => {
    const fault = bridge.faultOf(hash)
    if (fault !== undefined && fault.kind !== 'LATE') throw new Error(`FailBridge decided ${fault.kind}`)
    const { payments } = await demo.get<{ payments: readonly FoundPayment[] }>(
      `/payments?paymentReference=${paymentReference}`,
    )
    return payments.find(({ txHash, sourceTxHash }) => txHash === hash || sourceTxHash === hash)
  }
  const found = await see(`the payment of transaction ${hash}`, read, { signal, timeoutMs })
  return { txHashes, ...found.effect, payments: found.value === undefined ? [] : [found.value] }
}

async function refund(
  { demo, signal, timeoutMs, enqueue }: Opened,
  { paymentId, amount }: { readonly paymentId: string; readonly amount?: string | undefined },
): Promise<Effect> {
  const txHashes = await refundPayment(demo, { paymentId, amount }, { signal, enqueue })
  const hash = txHashes.at(-1) ?? ''
  const read = () => findRefunded(demo, paymentId, hash)
  const found = await see(`the refund by transaction ${hash}`, read, { signal, timeoutMs })
  return { txHashes, ...found.effect, payments: found.value === undefined ? [] : [found.value] }
}

async function reorg(
  { demo, chains, ...within }: Opened,
  terms: { readonly network: string; readonly isMinedAgain: boolean; readonly blocks?: number | undefined },
): Promise<Effect> {
  const chain = chainNamed(chains, terms.network)
  const most = chain.clock.replaceable()
  const depth = terms.blocks ?? most
  if (depth > most || depth === 0) {
    const detail = `${chain.spec.name} can lose at most ${most} blocks: what is final or older than this process stays`
    throw waybillError('INVALID_FIELD', { field: 'blocks', detail })
  }
  await seeHeads(demo, [chain], within)
  let find: () => Promise<readonly FoundPayment[]> = async () => []
  let before: readonly FoundPayment[] = []
  const transactions = await chain.clock.reorg(depth, async (hashes) => {
    find = () => findPaid(demo, chain, hashes)
    before = await find()
  })
  // The bridge delivers again, so a payment may be back already, in another block.
  const isGone = async () => {
    const places = new Set(before.map(({ id, blockNumber }) => `${id} ${blockNumber}`))
    return (await find()).every(({ id, blockNumber }) => !places.has(`${id} ${blockNumber}`))
  }
  const gone = await seeHeads(demo, [chain], within, isGone)
  const removed = { ...gone, removedPayments: before.map(({ id }) => id) }
  if (!terms.isMinedAgain || !gone.seen) return removed
  for (const { raw, fields } of transactions) {
    const { from, to, input: data, value, gas, nonce, maxFeePerGas, maxPriorityFeePerGas } = fields
    const again = { from, to, data, value, gas, nonce, maxFeePerGas, maxPriorityFeePerGas }
    // What the node sent for an address without its key has no signature. It refuses what the sender has replaced meanwhile.
    await chain.client.rpc
      .call('eth_sendRawTransaction', [raw])
      .catch(() => chain.client.rpc.call('eth_sendTransaction', [again]))
      .catch(() => undefined)
    // A block for each keeps their order.
    await chain.clock.mineNow()
  }
  const isBack = async () => (await find()).length === before.length
  const back = await seeHeads(demo, [chain], within, isBack)
  return { ...removed, ...back, payments: await find() }
}

async function mine(
  { demo, chains, ...within }: Opened,
  terms: { readonly network: string; readonly blocks?: number | undefined },
): Promise<Effect> {
  const chain = chainNamed(chains, terms.network)
  const blocks = terms.blocks ?? chain.spec.finalityDepth
  for (let mined = 0; mined < blocks; mined++) await chain.clock.mineNow()
  return seeHeads(demo, [chain], within)
}

async function failBridge(
  { bridge }: Opened,
  { outcome, delaySeconds = 60 }: { readonly outcome: BridgeFault['kind']; readonly delaySeconds?: number | undefined },
): Promise<Effect> {
  await bridge.fail({ kind: outcome, lateMs: outcome === 'LATE' ? delaySeconds * 1_000 : 0 })
  return { seen: true }
}

async function movePrice(
  { demo, chains, ...within }: Opened,
  { currency, usd, network }: { readonly currency: string } & Optional<Record<'usd' | 'network', string>>,
): Promise<Effect> {
  const price = usd === undefined ? undefined : (parseAmount(usd, FEED_DECIMALS) ?? 0n)
  if (price !== undefined && (price <= 0n || price >= MAX_PRICE)) {
    const detail = 'it must be above 0 and below a billion, with at most 8 decimals'
    throw waybillError('INVALID_AMOUNT', { field: 'usd', value: usd ?? '', detail })
  }
  const asked = network === undefined ? chains : [chainNamed(chains, network)]
  const symbolsOf = ({ spec }: Chain) => [spec.native, ...spec.tokens].map(({ symbol }) => symbol)
  const moved = asked.filter((chain) => symbolsOf(chain).includes(currency))
  if (moved.length === 0) throw unknown('currency', currency, [...new Set(asked.flatMap(symbolsOf))])
  await Promise.all(moved.map(({ clock }) => clock.holdPrice(currency, price)))
  return seeHeads(demo, moved, within)
}

async function moveClock(
  { demo, chains, ...within }: Opened,
  { seconds, network }: { readonly seconds: number; readonly network?: string | undefined },
): Promise<Effect> {
  const moved = network === undefined ? chains : [chainNamed(chains, network)]
  await Promise.all(moved.map(({ clock }) => clock.moveBy(seconds)))
  return seeHeads(demo, moved, within)
}

function unknown(field: string, value: string, names: readonly string[]) {
  const all = `the demo has ${names.join(', ')}`
  return waybillError('UNKNOWN_ENUM_VALUE', { field, value, suggestion: suggestName(value, names, all) })
}

function chainNamed(chains: readonly Chain[], network: string): Chain {
  const found = chains.find(({ spec }) => spec.name === network.toUpperCase())
  if (found !== undefined) return found
  throw unknown(
    'network',
    network,
    chains.map(({ spec }) => spec.name),
  )
}

/** Undefined where no route is cheapest: the API then says why not even the direct one can be taken. */
async function findCheapest(
  demo: RunningDemo,
  paymentReference: string,
  asked: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const path = `/v1/request/${encodeURIComponent(paymentReference)}/routes?${new URLSearchParams(asked)}`
  const { routes } = await demo.get<{ routes: { id: string; tags: readonly string[] }[] }>(path)
  return routes.find(({ tags }) => tags.includes('CHEAPEST'))?.id
}

interface Within {
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

/** Waits for an effect. That it does not come is no error: the effect was caused. */
async function see<T>(what: string, read: () => Promise<T | undefined>, { signal, timeoutMs }: Within) {
  try {
    return { value: await waitFor(what, read, signal, timeoutMs), effect: { seen: true } }
  } catch (error) {
    return { effect: { seen: false, notSeenBecause: (error as Error).message } }
  }
}

/** Waits until the service has read the chains up to their heads, and something more holds. */
async function seeHeads(
  demo: RunningDemo,
  chains: readonly Chain[],
  within: Within,
  holds = async () => true,
): Promise<Effect> {
  const heads = await Promise.all(
    chains.map(async ({ spec, client }) => {
      const { number: block, timestampSec } = await client.head()
      return { network: spec.name, block, time: new Date(timestampSec * 1_000) }
    }),
  )
  const read = async () => {
    const { asOf } = await demo.get<{ asOf: { network: string; block?: string }[] }>('/payments?limit=1')
    const blocks = new Map(asOf.map(({ network, block }) => [network, BigInt(block ?? -1)]))
    const areRead = heads.every(({ network, block }) => (blocks.get(network) ?? -1n) >= block)
    return (areRead && (await holds())) || undefined
  }
  const names = heads.map(({ network, block }) => `block ${block} of ${network}`)
  const { effect } = await see(names.join(' and '), read, within)
  return effect.seen ? { ...effect, heads } : effect
}

/** The payments that transactions of a chain made. */
async function findPaid(demo: RunningDemo, chain: Chain, hashes: readonly Hex[]): Promise<readonly FoundPayment[]> {
  const found: FoundPayment[] = []
  for (const part of chunksOf(hashes, MAX_VALUES)) {
    const query = `txHash=${part.join(',')}&destinationNetwork=${chain.spec.name}&limit=${MAX_VALUES}`
    const { payments } = await demo.get<{ payments: readonly FoundPayment[] }>(`/payments?${query}`)
    found.push(...payments.filter(({ txHash }) => hashes.includes(txHash as Hex)))
  }
  return found
}
