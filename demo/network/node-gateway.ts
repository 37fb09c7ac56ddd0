/**
 * The gateway before a demo node. The node itself accepts any Host and Origin, so it listens on a loopback address that nobody can guess; the
 * gateway passes on the calls of allowed callers.
 */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingMessage, type RequestListener, request, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { type LocalServer, type Refusal, refuseForeign, serveLocally } from './local-server.ts'

/** One of 16 million loopback addresses. A page would need years to try them with all ports. */
export function pickHiddenHost(): string {
  return ['127', ...Array.from({ length: 3 }, () => String(randomInt(1, 255)))].join('.')
}

/**
 * Passes JSON-RPC on unchanged, single calls and batches of any size, from a free port of 127.0.0.1.
 *
 * @param nodeUrl - URL of the node
 */
export async function startNodeGateway(nodeUrl: string): Promise<LocalServer> {
  const agent = new Agent({ keepAlive: true })
  const forward: RequestListener = (call, answer) => {
    const refusal = refusalOf(call)
    if (refusal !== undefined) return sendRefusal(answer, refusal)
    passOn(call, answer, { nodeUrl, agent }).catch((error: Error) => {
      if (answer.headersSent) answer.destroy()
      else sendRefusal(answer, { status: 502, message: `the node of the demo did not answer: ${error.message}` })
    })
  }
  // A node may take long to answer, and only programs of this machine call it.
  const { url, stop } = await serveLocally(forward, { requestTimeout: 0 })
  return {
    url,
    async stop() {
      const stopped = stop()
      agent.destroy()
      await stopped
    },
  }
}

function refusalOf(call: IncomingMessage): Refusal | undefined {
  const refusal = refuseForeign(call)
  if (refusal !== undefined || call.method === 'POST') return refusal
  return { status: 405, message: 'JSON-RPC is called by POST' }
}

/** As a JSON-RPC error, which clients can read. */
function sendRefusal(answer: ServerResponse, { status, message }: Refusal): void {
  const body = JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_600, message } })
  const allow = status === 405 ? { allow: 'POST' } : {}
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), connection: 'close' }
  answer.writeHead(status, { ...headers, ...allow }).end(body)
}

async function passOn(
  call: IncomingMessage,
  answer: ServerResponse,
  { nodeUrl, agent }: { nodeUrl: string; agent: Agent },
): Promise<void> {
  const length = call.headers['content-length']
  const headers = { 'content-type': 'application/json', ...(length !== undefined && { 'content-length': length }) }
  const passed = request(nodeUrl, { method: 'POST', agent, headers })
  answer.once('close', () => {
    if (!answer.writableFinished) passed.destroy()
  })
  const answered = once(passed, 'response') as Promise<[IncomingMessage]>
  const [[response]] = await Promise.all([answered, pipeline(call, passed)])
  const given = response.headers['content-length']
  answer.writeHead(response.statusCode ?? 502, {
    'content-type': response.headers['content-type'] ?? 'application/json',
    ...(given !== undefined && { 'content-length': given }),
  })
  await pipeline(response, answer)
}
