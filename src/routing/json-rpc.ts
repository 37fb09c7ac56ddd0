/**
 * A JSON-RPC client for many small reads: all calls of one question go in one HTTP request. It trusts nothing that comes back:
 * answers are limited in size and checked in shape.
 */

/** The largest answer that is read. The longest part is the code of a contract wallet, below 100 kB. */
const MOST_ANSWER_BYTES = 1 << 20

/** Statuses by which nodes and gateways refuse a batch where a single call would do. */
const BATCH_REFUSED_STATUSES = new Set([400, 405, 413, 422, 501])

export interface RpcCall {
  readonly method: string
  readonly params: readonly unknown[]
}

/** The node could not be reached, or did not answer as a node does. `detail` never holds the URL, which may hold a key. */
export class RpcFailure extends Error {
  override readonly name = 'RpcFailure'
  readonly kind: 'UNREACHABLE' | 'INCONSISTENT'

  constructor(kind: RpcFailure['kind'], detail: string, options?: ErrorOptions) {
    super(detail, options)
    this.kind = kind
  }
}

export interface JsonRpc {
  /**
   * Makes all calls in one HTTP request, or in parallel ones where the URL refuses batches.
   *
   * @returns the results in the order of the calls
   * @throws RpcFailure when any of them has no result; the signal's reason when it fires
   */
  callAll(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly unknown[]>
}

/** Makes the client of one URL. Whether it takes batches is learned once. */
export function createJsonRpc(url: string, fetchFunction: typeof fetch): JsonRpc {
  let takesBatches = true

  async function post(body: string, signal: AbortSignal): Promise<{ status: number; text: string }> {
    try {
      const response = await fetchFunction(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
        redirect: 'error',
        signal,
      })
      return { status: response.status, text: await readLimited(response) }
    } catch (error) {
      if (signal.aborted || error instanceof RpcFailure) throw error
      throw new RpcFailure('UNREACHABLE', describeNetworkError(error), { cause: error })
    }
  }

  async function callBatch(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly unknown[] | undefined> {
    const { status, text } = await post(JSON.stringify(calls.map(toMessage)), signal)
    if (BATCH_REFUSED_STATUSES.has(status)) return undefined
    const answer = parseAnswer(status, text)
    if (Array.isArray(answer)) return pickResults(answer, calls)
    if (isObject(answer) && 'error' in answer) return undefined
    throw new RpcFailure('INCONSISTENT', 'a batch was answered with something else')
  }

  async function callSingle(call: RpcCall, signal: AbortSignal): Promise<unknown> {
    const { status, text } = await post(JSON.stringify(toMessage(call, 0)), signal)
    return pickResults([parseAnswer(status, text)], [call])[0]
  }

  return {
    async callAll(calls, signal) {
      if (takesBatches) {
        const results = await callBatch(calls, signal)
        if (results !== undefined) return results
      }
      const results = await Promise.all(calls.map((call) => callSingle(call, signal)))
      // Only now is it known that the batch was at fault and not the calls.
      takesBatches = false
      return results
    },
  }
}

function toMessage(call: RpcCall, id: number): object {
  return { jsonrpc: '2.0', id, method: call.method, params: call.params }
}

async function readLimited(response: Response): Promise<string> {
  const announced = response.headers.get('content-length')
  if (announced !== null && response.headers.get('content-encoding') === null) {
    // An uncompressed body never goes beyond what is announced, and reading it whole takes less than chunk by chunk.
    checkSize(Number(announced))
    return response.text()
  }
  if (response.body === null) return ''
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body) {
    size += chunk.length
    checkSize(size)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function checkSize(bytes: number): void {
  if (bytes <= MOST_ANSWER_BYTES) return
  throw new RpcFailure('INCONSISTENT', `its answer is larger than ${MOST_ANSWER_BYTES} bytes`)
}

function parseAnswer(status: number, text: string): unknown {
  // Nodes answer errors of the protocol with 200; anything else comes from what stands before them.
  if (status !== 200) throw new RpcFailure('UNREACHABLE', `HTTP status ${status}`)
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new RpcFailure('INCONSISTENT', 'no JSON', { cause })
  }
}

function pickResults(answers: readonly unknown[], calls: readonly RpcCall[]): readonly unknown[] {
  const byId = new Map<unknown, Record<string, unknown>>()
  for (const answer of answers) if (isObject(answer)) byId.set(answer.id, answer)
  return calls.map((call, id) => {
    const answer = byId.get(id)
    if (answer === undefined) throw new RpcFailure('INCONSISTENT', `no answer to ${call.method}`)
    if (isObject(answer.error))
      throw new RpcFailure('INCONSISTENT', `${call.method} failed with ${codeOf(answer.error)}`)
    if (answer.result === undefined) throw new RpcFailure('INCONSISTENT', `no result of ${call.method}`)
    return answer.result
  })
}

function codeOf(error: Record<string, unknown>): string {
  return `code ${typeof error.code === 'number' ? error.code : 'unknown'}`
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Says what a failed fetch was about without the URL: `ECONNREFUSED`. */
function describeNetworkError(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown } }
  return typeof cause?.code === 'string' ? cause.code : 'the connection failed'
}
