/**
 * Reads from a node what each payment event of a chain did, by the rules of CHAIN alone: a slow reader that is written to be read. It imports
 * nothing of the service, so that a fault of detection is not a fault of the model.
 */
import {
  decodeFunctionData,
  encodeFunctionData,
  type Hex,
  keccak256,
  parseAbi,
  toBytes,
  toHex,
  zeroAddress,
} from 'viem'
import { COIN, type PlacedFact } from './expected-state.ts'

/** A chain as its chains file describes it. Addresses in lower case. */
export interface ModelChain {
  readonly network: string
  readonly rpc: (method: string, params: readonly unknown[]) => Promise<unknown>
  /** Fee proxies and conversion proxies. */
  readonly proxies: ReadonlySet<string>
  readonly factories: ReadonlySet<string>
  readonly swaps: ReadonlySet<string>
  /** Batches and other listed contracts that pay with what they are given. */
  readonly intermediaries: Set<string>
  readonly executors: ReadonlySet<string>
  readonly tokens: ReadonlySet<string>
  readonly paths: readonly ModelPath[]
}

/** A path of feeds from US dollars to a token. */
export interface ModelPath {
  /** The token's address, or `coin`. */
  readonly token: string
  /** ChainlinkConversionPath. */
  readonly contract: Hex
  readonly addresses: readonly Hex[]
  readonly heartbeatSec: number
}

interface Log {
  readonly address: Hex
  readonly topics: readonly Hex[]
  readonly data: Hex
}

interface Receipt {
  readonly transactionHash: Hex
  readonly from: Hex
  readonly to: Hex | null
  readonly logs: readonly Log[]
}

interface Block {
  readonly number: Hex
  readonly timestamp: Hex
  readonly transactions: readonly Hex[]
}

const topicOf = (signature: string) => keccak256(toBytes(signature))
const TRANSFER = topicOf('Transfer(address,address,uint256)')
const TOKEN_PAYMENT = topicOf('TransferWithReferenceAndFee(address,address,uint256,bytes,uint256,address)')
const COIN_PAYMENT = topicOf('TransferWithReferenceAndFee(address,uint256,bytes,uint256,address)')
const CONVERSION = topicOf('TransferWithConversionAndReference(uint256,address,bytes,uint256,uint256)')
const TOKEN_PROXY = topicOf('ERC20SingleRequestProxyCreated(address,address,address,bytes,address,uint256,address)')
const COIN_PROXY = topicOf('EthereumSingleRequestProxyCreated(address,address,bytes,address,uint256,address)')
/** What stands for US dollars in paths. */
const USD = `0x${keccak256(toBytes('{"type":"iso4217","value":"usd"}')).slice(-40)}`

const word = (data: Hex, place: number): Hex => `0x${data.slice(2 + 64 * place, 66 + 64 * place)}`
const addressIn = (text: Hex) => `0x${text.slice(-40)}`.toLowerCase()
const lower = (text: string) => text.toLowerCase()

/** An event before it is known which request it is about. */
export type ModelFact = Omit<PlacedFact, 'about' | 'reference'> & { readonly topic: Hex }

/** Reads the events of the next blocks, in the order of the chain. Adds the SingleRequestProxies that they create to the chain's intermediaries. */
export async function readFacts(
  chain: ModelChain,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<ModelFact[]> {
  const facts: ModelFact[] = []
  for (let number = from; number <= to; number++) {
    const block = (await chain.rpc('eth_getBlockByNumber', [toHex(number), false])) as Block
    const receipts: Receipt[] = []
    for (const hash of block.transactions) {
      receipts.push((await chain.rpc('eth_getTransactionReceipt', [hash])) as Receipt)
    }
    for (const { logs } of receipts) for (const proxy of createdIn(chain, logs)) chain.intermediaries.add(proxy)
    for (const receipt of receipts) facts.push(...(await readEvents(chain, receipt, block)))
  }
  return facts
}

/** @param references - which request's reference each reference belongs to: its own, or that of its refund address */
export function factsAbout(facts: readonly ModelFact[], references: ReadonlyMap<Hex, Hex>): PlacedFact[] {
  const byTopic = new Map([...references].map(([reference, about]) => [keccak256(reference), { reference, about }]))
  return facts.flatMap(({ topic, ...fact }) => {
    const known = byTopic.get(topic)
    return known === undefined ? [] : [{ ...fact, ...known }]
  })
}

function createdIn({ factories }: ModelChain, logs: readonly Log[]): string[] {
  return logs
    .filter(
      ({ address, topics: [kind] }) => factories.has(lower(address)) && (kind === TOKEN_PROXY || kind === COIN_PROXY),
    )
    .map(({ data }) => addressIn(word(data, 0)))
}

interface Transfer {
  readonly place: number
  readonly token: string
  readonly from: string
  readonly to: string
  readonly value: bigint
}

/** A log of a followed proxy. Amounts in base units. */
interface Seen {
  readonly place: number
  readonly eventIndex: number
  readonly emitter: string
  readonly topic: Hex
  readonly token: string
  readonly to: string
  readonly amount: bigint
  readonly feeAmount: bigint
  readonly feeAddress: string
  readonly conversion: { readonly amount: bigint; readonly currency: string; readonly feeAmount: bigint } | undefined
}

async function readEvents(chain: ModelChain, receipt: Receipt, block: Block): Promise<ModelFact[]> {
  const transfers = receipt.logs.flatMap(readTransfer)
  const seen = readSeen(chain, receipt.logs)
  const claims = claimTransfers(seen, transfers)
  const tokenPayers = followTokens(chain, transfers, new Map([...claims].map(([event, { place }]) => [place, event])))
  const coins = seen.filter(({ token }) => token === COIN)
  const coinPayers = coins.length === 0 ? new Map<Seen, CoinPayer>() : await findCoinPayers(chain, receipt, coins)
  const events: ModelFact[] = []
  for (const event of seen) {
    const claim = claims.get(event)
    const coin = coinPayers.get(event)
    const paidFrom = event.token === COIN ? coin?.caller : claim?.from
    const received = event.token === COIN ? event.amount : (claim?.value ?? 0n)
    const { conversion } = event
    events.push({
      topic: event.topic,
      network: chain.network,
      txHash: receipt.transactionHash,
      eventIndex: event.eventIndex,
      block: Number(block.number),
      timestampSec: Number(block.timestamp),
      to: event.to,
      token: event.token,
      received,
      paidFrom: paidFrom ?? '',
      isPassedOn: paidFrom === undefined || passesOn(chain, paidFrom),
      payer: event.token === COIN ? coin?.payer : tokenPayers.get(event),
      payerNeedsTrace: event.token === COIN && coin?.isTraced === true,
      ...(conversion?.currency === USD && {
        // What arrived counts, of a token that takes a fee on the way too.
        dollars: event.amount === 0n ? 0n : (conversion.amount * received) / event.amount,
        rate: await judgeRate(chain, event, conversion.amount, block),
      }),
    })
  }
  return events
}

function passesOn({ swaps, intermediaries, executors }: ModelChain, address: string): boolean {
  return swaps.has(address) || intermediaries.has(address) || executors.has(address)
}

function readTransfer({ address, topics, data }: Log, place: number): Transfer[] {
  const [kind, from = '0x', to = '0x'] = topics
  if (kind !== TRANSFER || topics.length !== 3) return []
  return [{ place, token: lower(address), from: addressIn(from), to: addressIn(to), value: BigInt(word(data, 0)) }]
}

/** The payment logs of followed proxies. All payment logs of the transaction count for the index. */
function readSeen({ proxies }: ModelChain, logs: readonly Log[]): Seen[] {
  const seen: Seen[] = []
  let eventIndex = -1
  for (const [place, { address, topics, data }] of logs.entries()) {
    const [kind, topic = '0x'] = topics
    if (kind !== TOKEN_PAYMENT && kind !== COIN_PAYMENT) continue
    eventIndex++
    const emitter = lower(address)
    if (!proxies.has(emitter)) continue
    const first = kind === TOKEN_PAYMENT ? 1 : 0
    const conversion = logs.find(
      (log, at) =>
        at > place && lower(log.address) === emitter && log.topics[1] === topic && log.topics[0] !== TRANSFER,
    )
    const isConversion = conversion?.topics[0] === CONVERSION
    seen.push({
      place,
      eventIndex,
      emitter,
      topic,
      token: kind === TOKEN_PAYMENT ? addressIn(word(data, 0)) : COIN,
      to: addressIn(word(data, first)),
      amount: BigInt(word(data, first + 1)),
      feeAmount: BigInt(word(data, first + 2)),
      feeAddress: addressIn(word(data, first + 3)),
      conversion: isConversion
        ? {
            amount: BigInt(word(conversion.data, 0)),
            currency: addressIn(word(conversion.data, 1)),
            feeAmount: BigInt(word(conversion.data, 2)),
          }
        : undefined,
    })
  }
  return seen
}

/** Finds the Transfer that each event claims: the fee's first, then the nearest earlier one to the payee with the same sender. */
function claimTransfers(events: readonly Seen[], transfers: readonly Transfer[]): Map<Seen, Transfer> {
  const taken = new Set<Transfer>()
  const claims = new Map<Seen, Transfer>()
  for (const event of events.filter(({ token }) => token !== COIN)) {
    const { place, token, to, amount, feeAmount, feeAddress } = event
    const free = transfers.filter((each) => each.place < place && each.token === token && !taken.has(each))
    const hasFee = feeAmount > 0n && feeAddress !== zeroAddress
    const nearestFee = hasFee ? free.findLast((each) => each.to === feeAddress) : undefined
    const fee = nearestFee !== undefined && nearestFee.value <= feeAmount ? nearestFee : undefined
    if (fee !== undefined) taken.add(fee)
    const paid = free.findLast(
      (each) =>
        each !== fee && each.to === to && (fee === undefined || (each.place < fee.place && each.from === fee.from)),
    )
    if (paid === undefined || paid.value > amount) continue
    taken.add(paid)
    claims.set(event, paid)
  }
  return claims
}

/** Money of one sender that an intermediary holds; undefined where the sender is not certain. */
interface Lot {
  readonly sender: string | undefined
  readonly left: bigint
}

/** Follows the value through intermediaries and swaps, in log order. @param payouts - the events by the place of their claimed Transfer */
function followTokens(chain: ModelChain, transfers: readonly Transfer[], payouts: ReadonlyMap<number, Seen>) {
  const lots = new Map<string, Lot[]>()
  const given = new Map<string, Lot[]>()
  const sold = new Map<string, Map<string, bigint>>()
  const payers = new Map<Seen, string>()
  const sum = (some: readonly Lot[]) => some.reduce((total, { left }) => total + left, 0n)
  const only = (some: readonly Lot[]) =>
    new Set(some.map(({ sender }) => sender)).size === 1 ? some[0]?.sender : undefined

  function spend(key: string, value: bigint): string | undefined {
    const held = (lots.get(key) ?? []).filter(({ left }) => left > 0n)
    const sender = sum(held) >= value ? only(held) : undefined
    lots.set(key, sum(held) > value ? [{ sender, left: sum(held) - value }] : [])
    return sender
  }

  function sell({ from: swap, token, value }: Transfer, isPayout: boolean): string | undefined {
    const mine = (of: string) => given.get(`${swap} ${of}`) ?? []
    const gone = sold.get(swap) ?? new Map<string, bigint>()
    if (!isPayout) {
      // What leaves before anything came in is change of the payment before.
      if (mine(token).length > 0) sold.set(swap, gone.set(token, (gone.get(token) ?? 0n) + value))
      return undefined
    }
    const others = [...gone].filter(([each]) => each !== token)
    const isCovered = sum(mine(token)) >= value && others.every(([each, total]) => total <= sum(mine(each)))
    const payer = isCovered ? only(others.flatMap(([each]) => mine(each))) : undefined
    sold.delete(swap)
    for (const key of [...given.keys()].filter((each) => each.startsWith(swap))) given.delete(key)
    return payer
  }

  for (const transfer of transfers) {
    const { place, token, from, to, value } = transfer
    const event = payouts.get(place)
    const isMoney = value > 0n && from !== to && chain.tokens.has(token)
    const isPlain = !passesOn(chain, from) && from !== zeroAddress
    let origin = isPlain ? from : undefined
    if (isMoney && chain.swaps.has(from)) origin = sell(transfer, event !== undefined)
    else if (isMoney && chain.intermediaries.has(from)) origin = spend(`${from} ${token}`, value)
    if (isMoney && (chain.swaps.has(to) || chain.intermediaries.has(to))) {
      const into = chain.swaps.has(to) ? given : lots
      into.set(`${to} ${token}`, [...(into.get(`${to} ${token}`) ?? []), { sender: origin, left: value }])
    }
    if (event !== undefined && isMoney && origin !== undefined) payers.set(event, origin)
  }
  return payers
}

interface Frame {
  readonly type: string
  readonly from: Hex
  readonly to?: Hex
  readonly value?: Hex
  readonly input: Hex
  readonly error?: string
  readonly calls?: readonly Frame[]
}

interface CoinPayer {
  /** The direct caller of the proxy. */
  readonly caller: string
  readonly payer: string | undefined
  readonly isTraced: boolean
}

const PAYING = parseAbi([
  'function transferWithReferenceAndFee(address to, bytes paymentReference, uint256 feeAmount, address feeAddress)',
  'function transferExactEthWithReferenceAndFee(address to, uint256 amount, bytes paymentReference, uint256 feeAmount, address feeAddress)',
  'function transferWithReferenceAndFee(address to, uint256 requestAmount, address[] path, bytes paymentReference, uint256 feeAmount, address feeAddress, uint256 maxRateTimespan)',
])

/** A call that was not reverted, with those that made it, the nearest first. */
interface Made {
  readonly frame: Frame
  readonly above: readonly Frame[]
}

/** Payments in coins: the direct caller of the proxy, or of the contract that passed the coins on. */
async function findCoinPayers(
  chain: ModelChain,
  receipt: Receipt,
  events: readonly Seen[],
): Promise<Map<Seen, CoinPayer>> {
  const [first] = events
  if (first !== undefined && events.length === 1 && receipt.to !== null && lower(receipt.to) === first.emitter) {
    const caller = lower(receipt.from)
    return new Map([[first, { caller, payer: passesOn(chain, caller) ? undefined : caller, isTraced: false }]])
  }
  const options = { tracer: 'callTracer' }
  const root = (await chain.rpc('debug_traceTransaction', [receipt.transactionHash, options])) as Frame
  const made = endedCalls(root, []).filter(({ frame }) => events.some((event) => isPaymentCall(frame, event)))
  const isSame =
    made.length === events.length && made.every(({ frame }, at) => isPaymentCall(frame, events[at] as Seen))
  if (!isSame) return new Map()
  const paid = events.map((event, at) => ({ event, ...(made[at] as Made) }))
  return new Map(paid.map(({ event, frame, above }) => [event, payerOf(chain, { frame, above }, paid)]))
}

/** In the order in which they ended, which is that of their events. */
function endedCalls(frame: Frame, above: readonly Frame[]): Made[] {
  if (frame.error !== undefined) return []
  return [...(frame.calls ?? []).flatMap((call) => endedCalls(call, [frame, ...above])), { frame, above }]
}

function isPaymentCall({ type, to, input }: Frame, event: Seen): boolean {
  if (type !== 'CALL' || to === undefined || lower(to) !== event.emitter) return false
  try {
    const { args } = decodeFunctionData({ abi: PAYING, data: input })
    const reference = args.find((each, at) => at > 0 && typeof each === 'string' && each.length === 18) as
      | Hex
      | undefined
    return lower(args[0]) === event.to && reference !== undefined && keccak256(reference) === event.topic
  } catch {
    return false
  }
}

function payerOf(
  chain: ModelChain,
  { frame, above }: Made,
  paid: readonly (Made & { readonly event: Seen })[],
): CoinPayer {
  const caller = lower(frame.from)
  if (!passesOn(chain, caller)) return { caller, payer: caller, isTraced: true }
  const passing = passingCalls(chain, { frame, above })
  const spentBy = (call: Frame) => paid.filter((each) => passingCalls(chain, each).includes(call))
  const isCovered = passing.every((call) => {
    const spent = spentBy(call).reduce((total, { event }) => total + event.amount + event.feeAmount, 0n)
    return BigInt(call.value ?? '0x0') >= spent
  })
  const outermost = passing.at(-1)
  const payer = outermost === undefined || !isCovered ? undefined : lower(outermost.from)
  return { caller, payer: payer === undefined || passesOn(chain, payer) ? undefined : payer, isTraced: true }
}

/** The calls of the contracts that passed the coins on, the nearest first. */
function passingCalls(chain: ModelChain, { frame, above }: Made): Frame[] {
  if (!chain.intermediaries.has(lower(frame.from))) return []
  const at = above.findIndex(({ type, to }) => type === 'CALL' && to !== undefined && lower(to) === lower(frame.from))
  const call = above[at]
  return call === undefined ? [] : [call, ...passingCalls(chain, { frame: call, above: above.slice(at + 1) })]
}

const RATES = parseAbi(['function getConversion(uint256 amount, address[] path) view returns (uint256, uint256)'])

/** A conversion counts at 98 % of our own path's rate, at its block or the one before, with fresh feeds. */
async function judgeRate({ rpc, paths }: ModelChain, event: Seen, amount: bigint, block: Block) {
  const path = paths.find(({ token }) => token === event.token)
  if (path === undefined) return 'RATE_OFF'
  const data = encodeFunctionData({ abi: RATES, functionName: 'getConversion', args: [amount, path.addresses] })
  let isStale = false
  for (const back of [0, 1]) {
    const at = toHex(Number(block.number) - back)
    const answer = (await rpc('eth_call', [{ to: path.contract, data }, at]).catch(() => '0x')) as Hex
    if (answer === '0x') continue
    const [due, oldest] = [BigInt(word(answer, 0)), Number(word(answer, 1))]
    if (event.amount * 100n < due * 98n) continue
    if (Number(block.timestamp) - oldest <= Math.ceil(path.heartbeatSec * 1.1)) return undefined
    isStale = true
  }
  return isStale ? 'STALE_RATE' : 'RATE_OFF'
}
