/**
 * A small HTTP server before a node, through which a test makes the node slow, wrong or absent, call by call.
 */
import { json } from 'node:stream/consumers'
import { serveLocally } from '../../../demo/network/local-server.ts'

interface ProxiedCall {
  readonly method: string
  readonly params: readonly unknown[]
}

/** Answers a call in place of the node, or changes the node's answer; undefined lets the call pass. */
export type Meddle = (call: ProxiedCall, ask: () => Promise<unknown>) => Promise<unknown> | undefined

export interface RpcProxy {
  readonly url: string
  /** All calls so far, batches taken apart. */
  readonly calls: ProxiedCall[]
  /** HTTP exchanges so far. */
  exchanges(): number
  /** Sets how each call is answered; without an argument, all calls pass. */
  meddle(meddle?: Meddle): void
  /** Answers every request with this status; without one, answers normally again. */
  fail(status?: number, body?: string): void
  /** Answers lists of calls with one error. */
  refuseBatches(refuse: boolean): void
  /** Hands every request as it is to a server in front of the node; without a URL, no more. */
  relay(url?: string): void
  stop(): Promise<void>
}

interface JsonCall extends ProxiedCall {
  readonly id: number
}

/** Starts a proxy on loopback. */
export async function startRpcProxy(target: string): Promise<RpcProxy> {
  const calls: ProxiedCall[] = []
  let exchanges = 0
  let meddle: Meddle | undefined
  let failure: { status: number; body: string } | undefined
  let refusesBatches = false
  let relayUrl: string | undefined

  async function forward(call: JsonCall): Promise<unknown> {
    const response = await fetch(target, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(call),
    })
    return response.json()
  }

  async function answer(call: JsonCall): Promise<unknown> {
    calls.push({ method: call.method, params: call.params })
    const ask = async () => {
      const reported = (await forward(call)) as { result: unknown; error?: unknown }
      return reported.error === undefined ? reported.result : { rpcError: reported.error }
    }
    const meddled = meddle?.(call, ask)
    if (meddled === undefined) return forward(call)
    const result = await meddled
    const isError = typeof result === 'object' && result !== null && 'rpcError' in result
    const body = isError ? { error: result.rpcError } : { result }
    return { jsonrpc: '2.0', id: call.id, ...body }
  }

  const { url, stop } = await serveLocally((request, response) => {
    exchanges++
    const respond = async () => {
      const body = (await json(request)) as JsonCall | JsonCall[]
      if (failure !== undefined) {
        response.writeHead(failure.status).end(failure.body)
        return
      }
      if (relayUrl !== undefined) {
        const relayed = await fetch(relayUrl, { method: 'POST', body: JSON.stringify(body) })
        const retryAfter = relayed.headers.get('retry-after')
        response.writeHead(relayed.status, retryAfter === null ? {} : { 'retry-after': retryAfter })
        response.end(await relayed.text())
        return
      }
      if (Array.isArray(body) && refusesBatches) {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'batches are off' } }))
        return
      }
      const answers = Array.isArray(body) ? await Promise.all(body.map(answer)) : await answer(body)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answers))
    }
    respond().catch(() => response.destroy())
  })
  return {
    url,
    calls,
    exchanges: () => exchanges,
    meddle: (next) => {
      meddle = next
    },
    fail: (status, body = '') => {
      failure = status === undefined ? undefined : { status, body }
    },
    refuseBatches: (refuse) => {
      refusesBatches = refuse
    },
    relay: (next) => {
      relayUrl = next
    },
    stop,
  }
}
