import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { OpenApiDocument } from '../../api/openapi/describe-api.ts'
import { type CommandContext, type CommandInput, parseAccountName, UsageError } from './command.ts'

const KEY_VARIABLE = 'WAYBILL_API_KEY'

/** What a command takes that calls a running service. */
export const SERVICE_OPTIONS = {
  '--url URL': 'where the service answers: https://pay.example',
  '[--key-file FILE]': `file of the API key (default: the variable ${KEY_VARIABLE})`,
  '[--account A]': "the account for which a platform's key acts",
}

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

/** Reads {@link SERVICE_OPTIONS}. @throws UsageError */
export async function openService(
  { url, account, 'key-file': file }: CommandInput['options'],
  context: CommandContext,
) {
  const name = account === undefined ? undefined : parseAccountName(account)
  return createServiceCaller(parseUrl(url), await readKey(file, context), name)
}

/**
 * Calls a running service as any client does: its limits, accounts and log hold.
 *
 * @param url - without a slash at its end
 * @param account - of a platform's key
 */
function createServiceCaller(url: string, key: string, account = '') {
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
    url,
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
    /** @param path - of the method in Connect @throws CallError with the reason and the message of the service, which ends with what to do */
    async call(path: string, message: Answer, signal: AbortSignal): Promise<Answer> {
      const response = await ask(path, { method: 'POST', headers, body: JSON.stringify(message) }, signal)
      const found = await readJson(response)
      if (response.ok && found !== undefined) return found
      const { message: fault = '', details = [] } = (found ?? {}) as ConnectFault
      const reason = details.find(({ debug }) => debug?.reason !== undefined)?.debug?.reason
      if (reason === undefined) throw new CallError(`${url} answered ${response.status} without a reason`)
      throw new CallError(`${reason}: ${fault}`)
    },
  }
}

async function readJson(response: Response): Promise<Answer | undefined> {
  const found: unknown = await response.json().catch(() => undefined)
  return typeof found === 'object' && found !== null ? (found as Answer) : undefined
}

/** @throws UsageError */
function parseUrl(text = ''): string {
  const url = URL.parse(text)
  const isPlain = url !== null && `${url.username}${url.password}${url.search}${url.hash}` === ''
  if (isPlain && /^https?:$/.test(url.protocol)) return url.href.replace(/\/+$/, '')
  throw new UsageError('--url is not where a service answers: use https://HOST or http://HOST:PORT, without a user')
}

/** @throws UsageError, which does not say what was read */
async function readKey(file: string | undefined, { environment, workingFolder }: CommandContext): Promise<string> {
  const given = environment[KEY_VARIABLE]
  if ((file === undefined) === (given === undefined)) throw new UsageError(`give --key-file or ${KEY_VARIABLE}`)
  const text = file === undefined ? given : await readFile(resolve(workingFolder, file), 'utf8').catch(() => undefined)
  if (text === undefined) throw new UsageError(`--key-file ${file} cannot be read`)
  const key = text.trim()
  if (/^[\x21-\x7e]{1,256}$/.test(key)) return key
  throw new UsageError(`${file === undefined ? KEY_VARIABLE : '--key-file'} holds no API key`)
}
