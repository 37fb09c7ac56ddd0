import type { OpenApiDocument } from '../../api/openapi/openapi-document.ts'

/** A JSON object that the service sent. */
export type Answer = Readonly<Record<string, unknown>>

/** What a model is shown instead of an answer. */
export class CallError extends Error {
  override readonly name = 'CallError'
}

/** Beyond the longest that the service lets a call take. */
const TIMEOUT_MS = 60_000

/** An error of Connect, whose details say in `debug` what they hold. */
type ConnectFault = {
  readonly message?: string
  readonly details?: readonly { readonly debug?: { readonly reason?: string } }[]
}

export type ServiceCaller = ReturnType<typeof createServiceCaller>

/**
 * Calls a running service as any client does: its limits, accounts and log hold.
 *
 * @param url - without a slash at its end
 * @param account - of a platform's key
 */
export function createServiceCaller(url: string, key: string, account = '') {
  let known: OpenApiDocument | undefined

  async function ask(path: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
    try {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
      // The key goes to no other host.
      return await fetch(url + path, { ...init, redirect: 'error', signal: limited })
    } catch (error) {
      const { message, cause } = error as Error
      const { code, message: why = message } = (cause ?? {}) as Partial<NodeJS.ErrnoException>
      throw new CallError(`${url} does not answer (${code ?? why})\nWhat to do: start the service, or correct --url`)
    }
  }

  const headers = {
    'content-type': 'application/json',
    'connect-protocol-version': '1',
    'x-api-key': key,
    ...(account && { 'x-account': account }),
  }
  return {
    /** The service's description of itself; KNOWN: as it was last, if it was. @throws CallError */
    async describe(signal: AbortSignal, which?: 'KNOWN'): Promise<OpenApiDocument> {
      if (which === 'KNOWN' && known !== undefined) return known
      const response = await ask('/openapi.json', {}, signal)
      const found = response.ok ? await readJson(response) : undefined
      if (found?.['x-reasons'] === undefined) {
        throw new CallError(`${url}/openapi.json (${response.status}) is not Waybill's\nWhat to do: correct --url`)
      }
      known = found as unknown as OpenApiDocument
      return known
    },
    /** @param path - of the method in Connect @throws CallError with the reason and the remedy of the service */
    async call(path: string, message: Answer, signal: AbortSignal): Promise<Answer> {
      const response = await ask(path, { method: 'POST', headers, body: JSON.stringify(message) }, signal)
      const found = await readJson(response)
      if (response.ok && found !== undefined) return found
      const { message: fault = '', details = [] } = (found ?? {}) as ConnectFault
      const reason = details.find(({ debug }) => debug?.reason !== undefined)?.debug?.reason
      if (reason === undefined) throw new CallError(`${url} answered ${response.status} without a reason`)
      const remedy = known?.['x-reasons'][reason]?.remedy
      throw new CallError(`${reason}: ${fault}${remedy ? `\nWhat to do: ${remedy}` : ''}`)
    },
  }
}

async function readJson(response: Response): Promise<Answer | undefined> {
  const found: unknown = await response.json().catch(() => undefined)
  return typeof found === 'object' && found !== null ? (found as Answer) : undefined
}
