/**
 * The smallest JSON-RPC client that the demo's chains need: one call or one ordered list of calls over HTTP.
 */

export interface Rpc {
  url: string
  /** @throws RpcCallError when the node answers with an error; a network failure is thrown as `fetch` gives it */
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
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: nextId++, method, params }),
      })
      const answer = (await response.json()) as RpcAnswer
      if (answer.error) throw new RpcCallError(method, answer.error)
      return answer.result as T
    },
  }
}

/** A quantity as JSON-RPC writes it. */
export function toQuantity(value: bigint | number): `0x${string}` {
  return `0x${value.toString(16)}`
}
