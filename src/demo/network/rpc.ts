/**
 * The smallest JSON-RPC client that the demo's chains need: a call at a time over HTTP. Plain node:http takes half the processor
 * time of `fetch`, and a first start makes some five thousand calls.
 */
import { request } from 'node:http'
import { text } from 'node:stream/consumers'

export interface Rpc {
  url: string
  /** @throws RpcCallError when the node answers with an error; a network failure is thrown as node:http gives it */
  call<T = unknown>(method: string, params?: readonly unknown[]): Promise<T>
}

/** The node understood the call and refused it. `data` is the revert's data where there is any. */
class RpcCallError extends Error {
  readonly method: string
  readonly code: number
  readonly data: string | undefined

  constructor(method: string, answer: { code: number; message: string; data?: string }) {
    super(`${method} failed: ${answer.message}`)
    this.name = 'RpcCallError'
    this.method = method
    this.code = answer.code
    this.data = answer.data
  }
}

interface RpcAnswer {
  result?: unknown
  error?: { code: number; message: string; data?: string }
}

export function createRpc(url: string): Rpc {
  let nextId = 1
  return {
    url,
    async call<T>(method: string, params: readonly unknown[] = []): Promise<T> {
      const body = await post(url, JSON.stringify({ jsonrpc: '2.0', id: nextId++, method, params }))
      const answer = JSON.parse(body) as RpcAnswer
      if (answer.error) throw new RpcCallError(method, answer.error)
      return answer.result as T
    },
  }
}

function post(url: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const call = request(url, { method: 'POST', headers }, (response) => {
      text(response).then(resolve, reject)
    })
    call.once('error', reject)
    call.end(body)
  })
}

/** A quantity as JSON-RPC writes it. */
export function toQuantity(value: bigint | number): `0x${string}` {
  return `0x${value.toString(16)}`
}
