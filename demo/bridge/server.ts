/** The bridge over HTTP with the API of LI.FI: `POST /v1/quote/contractCalls` and `GET /v1/status`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from '../../src/domain/logger.ts'
import { refuseForeign } from '../network/local-callers.ts'
import { type LocalServer, serveLocally } from '../network/local-server.ts'
import type { Book } from './book.ts'
import type { BridgeChain } from './bridge-chain.ts'
import { QuestionFault, quote, TOOL } from './quotes.ts'
import { statusOf } from './statuses.ts'

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
