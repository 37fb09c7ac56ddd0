/** The bridge over HTTP with the API of LI.FI: `POST /v1/quote/contractCalls` and `GET /v1/status`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ExtendedTransactionInfo, FullStatusData } from '@lifi/types'
import type { Hex } from 'viem'
import type { Logger } from '../../src/domain/logger.ts'
import { type LocalServer, refuseForeign, serveLocally } from '../network/local-server.ts'
import type { Book, Entry, Place } from './book.ts'
import { type BridgeChain, type BridgeToken, tokenAt } from './bridge-chain.ts'
import { termsOf } from './deposit.ts'
import { asToken, QuestionFault, quote, TOOL } from './quotes.ts'

/** A quote request has about 2 kB. */
const MAX_BODY_BYTES = 64 * 1_024

interface Answer {
  status: number
  body: object
}

/** Starts the server; its `url` ends before `/v1`. */
export async function startBridgeServer(
  chains: readonly BridgeChain[],
  book: Book,
  { now, logger }: { now: () => Date; logger: Logger },
): Promise<LocalServer> {
  async function answer(request: IncomingMessage): Promise<Answer> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    if (request.method === 'POST' && pathname === '/v1/quote/contractCalls') {
      const asked = parse(await readBody(request))
      return { status: 200, body: await quote(chains, asked, Math.floor(now().getTime() / 1_000)) }
    }
    if (request.method === 'GET' && pathname === '/v1/status') {
      const txHash = searchParams.get('txHash') ?? ''
      await book.read()
      const status = await statusOf(chains, book.entries(), txHash)
      if (status === undefined) throw new QuestionFault(1003, 'the transaction is no transfer of the bridge')
      return { status: 200, body: status }
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
        if (!(error instanceof QuestionFault)) logger.warn({ err: error }, 'the bridge failed to answer a request')
        return explain(error)
      })
      .then((answered) => send(response, answered))
      .catch(() => response.destroy())
  })
}

const STATUS_OF_CODE = { 1002: 404, 1003: 404, 1011: 400 } as const

function explain(error: unknown): Answer {
  if (!(error instanceof QuestionFault))
    return { status: 500, body: { message: 'internal error of the bridge', code: 1006 } }
  const { code, message, toolCode } = error
  const errors = toolCode === undefined ? [] : [{ errorType: 'NO_QUOTE', code: toolCode, tool: TOOL, message }]
  return { status: STATUS_OF_CODE[code], body: { message, code, errors } }
}

function send(response: ServerResponse, { status, body }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw new QuestionFault(1011, `the body is longer than ${MAX_BODY_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new QuestionFault(1011, 'the body is not valid JSON')
  }
}

/**
 * The status of a deposit in LI.FI's form.
 *
 * @param txHash - of the deposit or of the delivery
 * @returns undefined when no deposit belongs to that transaction
 */
async function statusOf(
  chains: readonly BridgeChain[],
  entries: readonly Entry[],
  txHash: string,
): Promise<FullStatusData | undefined> {
  const wanted = txHash.toLowerCase()
  const entry = entries.find(({ deposited, delivered }) => deposited.txHash === wanted || delivered?.txHash === wanted)
  if (entry === undefined) return undefined
  const { id, deposit, deposited, delivered, closed } = entry
  const { payer, toToken, toAmount, fallbackTo } = termsOf(deposit)
  const destination = chains.find(({ chainId }) => BigInt(chainId) === deposit.toChainId) ?? deposited.chain
  const back = closed?.kind === 'RETURNED' ? closed : undefined
  const received = delivered ?? back
  const [sentToken, wantedToken] = [tokenAt(deposited.chain, deposit.token), tokenAt(destination, toToken)]
  const gotToken = delivered === undefined ? sentToken : wantedToken
  const gotAmount = delivered === undefined ? deposit.amount : toAmount
  return {
    transactionId: id,
    sending: await transactionOf(deposited, sentToken, deposit.amount),
    receiving:
      received === undefined ? { chainId: destination.chainId } : await transactionOf(received, gotToken, gotAmount),
    feeCosts: [],
    lifiExplorerLink: '',
    fromAddress: payer,
    toAddress: fallbackTo,
    tool: TOOL,
    metadata: { integrator: '' },
    ...verdict(entry),
  }
}

function verdict({ delivered, closed }: Entry): Pick<FullStatusData, 'status' | 'substatus'> {
  if (delivered !== undefined) {
    // When the call failed, the wallet got the tokens.
    return { status: 'DONE', substatus: delivered.isPaid ? 'COMPLETED' : 'PARTIAL' }
  }
  if (closed?.kind === 'RETURNED') return { status: 'DONE', substatus: 'REFUNDED' }
  return { status: 'PENDING', substatus: 'WAIT_DESTINATION_TRANSACTION' }
}

async function transactionOf(
  { chain, txHash }: Place,
  token: BridgeToken | undefined,
  amount: bigint,
): Promise<ExtendedTransactionInfo> {
  const receipt = await chain.client.receipt(txHash)
  const [gasPrice, gasUsed] = [receipt?.effectiveGasPrice ?? 0n, receipt?.gasUsed ?? 0n]
  return {
    txHash,
    chainId: chain.chainId,
    txLink: '',
    amount: amount.toString(),
    ...(token === undefined ? {} : { token: asToken(chain, token) }),
    gasPrice: gasPrice.toString(),
    gasUsed: gasUsed.toString(),
    gasToken: asToken(chain, chain.coin),
    gasAmount: (gasPrice * gasUsed).toString(),
    gasAmountUSD: '',
    timestamp: await timestampOf(chain, receipt?.blockHash),
  }
}

async function timestampOf({ client }: BridgeChain, blockHash: Hex | undefined): Promise<number> {
  if (blockHash === undefined) return 0
  const block = await client.rpc.call<{ timestamp: Hex } | null>('eth_getBlockByHash', [blockHash, false])
  return Number(block?.timestamp ?? 0)
}
