/** A small JSON-RPC client for the demo's chains. It uses node:http, which takes half the processor time of `fetch`. */
import { request } from 'node:http'
import { text } from 'node:stream/consumers'

export interface Rpc {
  url: string
  /** @throws Error with the `code` and the revert `data` of the node's answer; network errors as node:http throws them, an AbortError when the signal fires */
  call<T = unknown>(method: string, params?: readonly unknown[], signal?: AbortSignal): Promise<T>
  /**
   * Several calls as few requests, which saves most of their time. The node may carry them out in any order.
   *
   * @returns their results, in the order of the calls
   * @throws such an error for the first that fails, after all were carried out; network errors as node:http throws them
   */
  callAll<T = unknown>(calls: readonly RpcCall[]): Promise<T[]>
}

/** A method and its parameters. */
export type RpcCall = readonly [method: string, params: readonly unknown[]]

/** Below the size that a node takes, also when each creates a contract. */
const CALLS_A_REQUEST = 40

interface RpcAnswer {
  id: number
  result?: unknown
  error?: { code: number; message: string; data?: string }
}

export function createRpc(url: string): Rpc {
  let nextId = 1
  return {
    url,
    async call<T>(method: string, params: readonly unknown[] = [], signal?: AbortSignal): Promise<T> {
      const body = await post(url, JSON.stringify({ jsonrpc: '2.0', id: nextId++, method, params }), signal)
      return resultOf(method, JSON.parse(body) as RpcAnswer) as T
    },
    async callAll<T>(calls: readonly RpcCall[]): Promise<T[]> {
      const results: T[] = []
      for (let from = 0; from < calls.length; from += CALLS_A_REQUEST) {
        const part = calls.slice(from, from + CALLS_A_REQUEST)
        const asked = part.map(([method, params]) => ({ jsonrpc: '2.0', id: nextId++, method, params }))
        const answers = JSON.parse(await post(url, JSON.stringify(asked))) as readonly RpcAnswer[]
        const byId = new Map(answers.map((answer) => [answer.id, answer]))
        for (const { id, method } of asked) results.push(resultOf(method, byId.get(id)) as T)
      }
      return results
    },
  }
}

function resultOf(method: string, answer: RpcAnswer | undefined): unknown {
  if (answer === undefined) throw new Error(`the node did not answer ${method}`)
  if (answer.error) {
    const { code, message, data } = answer.error
    throw Object.assign(new Error(`${method} failed: ${message}`), { code, data })
  }
  return answer.result
}

function post(url: string, body: string, signal?: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const call = request(url, { method: 'POST', headers, signal }, (response) => {
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
