/**
 * The demo's own bridge between its chains: quotes and statuses over HTTP with the API of LI.FI, and a relayer that delivers. It runs in
 * the demo's process; its only state is on the chains.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import type { Hex } from 'viem'
import type { Logger } from '../../src/domain/logger.ts'
import type { ContractCall } from '../network/demo-contracts.ts'
import { type LocalServer, refuseForeign, serveLocally } from '../network/local-server.ts'
import { type Book, createBook, type Entry, type Place } from './book.ts'
import type { BridgeChain } from './bridge-chain.ts'
import { encodeDelivery, encodeGiveBack, payerOf, returnFrom, withoutCall } from './deposit.ts'
import { QuestionFault, quote, TOOL } from './quotes.ts'

const CHECK_EVERY_MS = 1_000

export type Bridge = Awaited<ReturnType<typeof startBridge>>

export async function startBridge(
  chains: readonly BridgeChain[],
  { now, logger }: { now: () => Date; logger: Logger },
) {
  const book = createBook(chains)
  const relayer = createRelayer(chains, book, logger)
  const server = await startBridgeServer(chains, book, { now, logger })
  const stopping = new AbortController()

  async function check(): Promise<void> {
    await book.read()
    await relayer.step()
  }

  async function run(): Promise<void> {
    const { signal } = stopping
    while (!signal.aborted) {
      await check().catch((error: unknown) => {
        if (!signal.aborted) logger.warn({ err: error }, 'the bridge could not read its chains; it tries again')
      })
      await setTimeout(CHECK_EVERY_MS, undefined, { signal }).catch(() => undefined)
    }
  }

  let running: Promise<void> | undefined
  return {
    /** Without `/v1`. */
    url: server.url,
    /** Decides what becomes of the next deposit. */
    fail: (fault: BridgeFault) => relayer.fail(fault),
    /** What was decided for a deposit, by the hash of its transaction. */
    faultOf: (txHash: string) => relayer.faultOf(txHash),
    /** Starts the relayer, which also completes the open deposits of an earlier run. */
    relay(): void {
      running ??= run()
    },
    async stop(): Promise<void> {
      stopping.abort()
      await Promise.all([running, server.stop()])
    },
  }
}

/** A transaction to send, and its chain. */
interface Task {
  chain: BridgeChain
  call: ContractCall
  /** For the log. */
  message: string
}

/** What becomes of a deposit: it is refunded, or delivered without the call, or delivered late. Forgotten when the process ends. */
export interface BridgeFault {
  readonly kind: 'REFUNDED' | 'UNPAID' | 'LATE'
  /** How long after the deposit nothing is sent, by this machine's clock. */
  readonly lateMs: number
}

/**
 * Several times what a delivery uses. An estimate would be too low: the executor treats a payment that runs out of gas like one that the
 * contract refuses and succeeds all the same, so the node finds the gas for that case.
 */
const GAS = 1_000_000n

/**
 * The relayer delivers a deposit on the other chain from its own funds, which are plenty, and refunds expired ones. Its state is on the chains, so
 * that after a restart it continues where it ended.
 */
export function createRelayer(chains: readonly BridgeChain[], book: Book, logger: Logger) {
  const underWay = new Map<string, Hex>()
  const refused = new Set<string>()
  const faults = new Map<Hex, (BridgeFault & { readonly fromMs: number }) | undefined>()
  const armed: BridgeFault[] = []

  /** The first time, an open deposit takes the fault that waits for one. */
  function judge({ id, delivered, returned }: Entry) {
    if (!faults.has(id)) {
      const fault = (delivered ?? returned) ? undefined : armed.shift()
      faults.set(id, fault && { ...fault, fromMs: Date.now() + fault.lateMs })
    }
    return faults.get(id)
  }

  async function carryOut({ chain, call, message }: Task, key: string): Promise<void> {
    const { rpc } = chain.client
    const sent = underWay.get(key)
    if (sent !== undefined && (await isUnderWay(chain, sent))) return
    const { relayer: from, tipPerGas } = chain
    try {
      // The estimate only shows whether the transaction would be reverted.
      await rpc.call('eth_estimateGas', [{ from, to: call.to, data: call.data }])
      const hash = await chain.client.send(from, call, { gas: GAS, maxPriorityFeePerGas: tipPerGas })
      underWay.set(key, hash)
      logger.info({ chain: chain.name, hash }, message)
    } catch (error) {
      if (!refused.has(key))
        logger.warn(
          { chain: chain.name, err: error },
          'a transaction of the bridge was refused; the bridge keeps trying',
        )
      refused.add(key)
    }
  }

  return {
    async fail(fault: BridgeFault): Promise<void> {
      await book.read()
      for (const entry of book.entries()) judge(entry)
      armed.push(fault)
    },
    faultOf(txHash: string): BridgeFault | undefined {
      const entry = book.entries().find(({ deposited }) => deposited.txHash === txHash)
      return entry && faults.get(entry.id)
    },
    /** Sends what is due according to the book. Resolves when the nodes have accepted it, before it is mined. */
    async step(): Promise<void> {
      for (const entry of book.entries()) {
        const fault = judge(entry)
        if (fault !== undefined && Date.now() < fault.fromMs) continue
        const task = decide(entry, fault, { chains, book })
        if (task !== undefined) await carryOut(task, `${task.message} ${entry.id}`)
      }
    },
  }
}

/** False after it was reverted, or after a reorg removed it and the node dropped it. */
async function isUnderWay({ client }: BridgeChain, hash: Hex): Promise<boolean> {
  const receipt = await client.receipt(hash)
  return receipt?.succeeded ?? (await client.rpc.call('eth_getTransactionByHash', [hash])) !== null
}

/** The next transaction for a deposit; undefined while something else must happen first. */
function decide(
  entry: Entry,
  fault: BridgeFault | undefined,
  { chains, book }: { chains: readonly BridgeChain[]; book: Book },
): Task | undefined {
  const { id, deposit, deposited, delivered, returned } = entry
  const source = deposited.chain
  const destination = chains.find(({ chainId }) => BigInt(chainId) === deposit.toChainId)
  if (destination === undefined || delivered !== undefined || returned !== undefined) return undefined
  const isInTime = book.headOf(destination).timestampSec <= deposit.across.fillDeadline
  if (isInTime && fault?.kind !== 'REFUNDED') {
    const call = encodeDelivery(destination.executor, id, fault?.kind === 'UNPAID' ? withoutCall(deposit) : deposit)
    return { chain: destination, call, message: 'the bridge delivers a deposit' }
  }
  if (book.headOf(source).timestampSec < returnFrom(deposit)) return undefined
  const call = encodeGiveBack(source.escrow, deposit)
  return { chain: source, call, message: 'the bridge refunds a deposit that was not delivered in time' }
}

interface Answer {
  status: number
  body: object
}

/** The bridge over HTTP with the API of LI.FI, as far as the service uses it. Its `url` ends before `/v1`. */
export async function startBridgeServer(
  chains: readonly BridgeChain[],
  book: Book,
  { now, logger }: { now: () => Date; logger: Logger },
): Promise<LocalServer> {
  async function answer(request: IncomingMessage): Promise<Answer> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    if (request.method === 'POST' && pathname === '/v1/quote/contractCalls') {
      const asked = parse(await text(request))
      return { status: 200, body: await quote(chains, asked, Math.floor(now().getTime() / 1_000)) }
    }
    if (request.method === 'GET' && pathname === '/v1/status') {
      await book.read()
      return { status: 200, body: statusOf(book.entries(), searchParams.get('txHash') ?? '') }
    }
    throw new QuestionFault(1003, 'there is no such path')
  }

  return serveLocally((request, response) => {
    const refusal = refuseForeign(request)
    if (refusal !== undefined) {
      const { status, message } = refusal
      return send(response, { status, body: { message, code: 1003 } })
    }
    answer(request)
      .catch((error: unknown) => {
        if (error instanceof QuestionFault) {
          const { code, message } = error
          return { status: code === 1011 ? 400 : 404, body: { message, code } }
        }
        logger.warn({ err: error }, 'the bridge failed to answer a request')
        return { status: 500, body: { message: 'internal error of the bridge', code: 1006 } }
      })
      .then((answered) => send(response, answered))
      .catch(() => response.destroy())
  })
}

function send(response: ServerResponse, { status, body }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    throw new QuestionFault(1011, 'the body is not valid JSON')
  }
}

/**
 * The status of a deposit in LI.FI's form.
 *
 * @param txHash - of the deposit or of the delivery
 * @throws QuestionFault when no deposit belongs to that transaction
 */
function statusOf(entries: readonly Entry[], txHash: string): object {
  const wanted = txHash.toLowerCase()
  const entry = entries.find(({ deposited, delivered }) => deposited.txHash === wanted || delivered?.txHash === wanted)
  if (entry === undefined) throw new QuestionFault(1003, 'the transaction is no transfer of the bridge')
  const { id, deposit, deposited, delivered, returned } = entry
  const received = delivered ?? returned
  const placeOf = ({ chain, txHash: hash }: Place) => ({ chainId: chain.chainId, txHash: hash })
  return {
    transactionId: id,
    tool: TOOL,
    fromAddress: payerOf(deposit),
    sending: placeOf(deposited),
    receiving: received === undefined ? { chainId: Number(deposit.toChainId) } : placeOf(received),
    status: received === undefined ? 'PENDING' : 'DONE',
    substatus: substatusOf(entry),
  }
}

function substatusOf({ delivered, returned }: Entry): string {
  // When the call failed, the wallet got the tokens.
  if (delivered !== undefined) return delivered.isPaid ? 'COMPLETED' : 'PARTIAL'
  return returned === undefined ? 'WAIT_DESTINATION_TRANSACTION' : 'REFUNDED'
}
