import type { LookupAddress } from 'node:dns'
import * as dns from 'node:dns/promises'
import * as http from 'node:http'
import * as https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { urlToHttpOptions } from 'node:url'
import { isPublicAddress } from '../../domain/hosts/public-address.ts'
import type { Tracer } from '../../domain/telemetry/telemetry.ts'
import type { Outcome } from '../rules/endpoint.ts'
import { hostOf } from '../rules/endpoint-url.ts'
import { readRetryAfter } from '../rules/retry-delivery.ts'

/** Resolves a name to all its addresses. @throws when it has none */
export type ResolveHost = (host: string) => Promise<readonly string[]>

/** What is sent. */
export interface Posting {
  readonly url: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** Sends once, and never throws but the signal's reason. */
export type PostWebhook = (posting: Posting, signal: AbortSignal) => Promise<Outcome>

export interface PostOptions {
  /** Whether addresses that are not public may be connected to. */
  readonly allowsPrivate: boolean
  readonly now: () => Date
  /** Default: the DNS, and this machine for `localhost`; where private addresses are allowed, also what only this machine knows. */
  readonly resolveHost?: ResolveHost | undefined
  /** From the call to the head of the answer; default {@link TIMEOUT_MS}. */
  readonly timeoutMs?: number | undefined
  /** What is sent carries its trace. */
  readonly tracer?: Tracer | undefined
}

const TIMEOUT_MS = 15_000

/** An answer's body is read so that its connection can be used again, but not a long or a slow one. */
const MAX_ANSWER_BYTES = 64 * 1024
const MAX_ANSWER_MS = 1_000

/** The connection would go to an address that is not public. */
class PrivateAddressError extends Error {
  override readonly name = 'PrivateAddressError'
}

/**
 * Makes what posts to endpoints. A name is resolved once for each connection, all its addresses are checked, and the connection goes to one of these, with
 * the name for TLS and Host: an answer of the DNS that changes afterwards reaches nothing. Redirects are not followed.
 */
export function createPostWebhook(options: PostOptions): { readonly post: PostWebhook; close(): void } {
  const { allowsPrivate, now, timeoutMs = TIMEOUT_MS, tracer } = options
  const { resolveHost = allowsPrivate ? resolveByMachine : resolveByDns } = options
  const agents = { 'http:': new http.Agent(AGENT_OPTIONS), 'https:': new https.Agent(AGENT_OPTIONS) }
  const requireAllowed = (addresses: readonly string[]) => {
    if (!allowsPrivate && !addresses.every(isPublicAddress)) throw new PrivateAddressError()
    return addresses
  }
  const find = async (host: string) => {
    const found = requireAllowed(await resolveHost(host)).map((address) => ({ address, family: isIP(address) }))
    if (found.length === 0) throw Object.assign(new Error('no address'), { code: 'ENOTFOUND' })
    return found as [LookupAddress, ...LookupAddress[]]
  }
  const answer = async (host: string, isAll: boolean, done: Parameters<LookupFunction>[2]) => {
    try {
      const found = await find(host)
      if (isAll) done(null, found)
      else done(null, found[0].address, found[0].family)
    } catch (error) {
      done(error as Error, '')
    }
  }
  const lookup: LookupFunction = (host, { all }, done) => void answer(host, all === true, done)

  function send({ url, body, headers }: Posting, signal: AbortSignal, mayRepeat: boolean): Promise<Outcome> {
    const parsed = new URL(url)
    const host = hostOf(parsed)
    // Without a name nothing is looked up.
    if (isIP(host) !== 0) requireAllowed([host])
    const isPlain = parsed.protocol === 'http:'
    const options = { ...urlToHttpOptions(parsed), method: 'POST', headers, lookup, signal }
    return new Promise((resolve, reject) => {
      const agent = agents[isPlain ? 'http:' : 'https:']
      const request = (isPlain ? http.request : https.request)({ ...options, agent })
      let hasHead = false
      request.on('response', (response) => {
        hasHead = true
        const outcome = outcomeOf(response, now())
        discard(response)
        // A delivery keeps its slot as long as its connection.
        response.on('close', () => resolve(outcome))
      })
      request.on('error', (error: NodeJS.ErrnoException) => {
        // The status counts, whatever becomes of the body.
        if (hasHead) return
        // The receiver may have closed an idle connection at the moment in which it was used again.
        const isStale = mayRepeat && request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
        if (isStale) resolve(send({ url, body, headers }, signal, false))
        else reject(error)
      })
      request.end(body)
    })
  }

  async function attempt(posting: Posting, signal: AbortSignal): Promise<Outcome> {
    const late = AbortSignal.timeout(timeoutMs)
    try {
      return await send(posting, AbortSignal.any([signal, late]), true)
    } catch (error) {
      signal.throwIfAborted()
      return { failure: late.aborted ? `no answer within ${timeoutMs / 1_000} s` : explain(error) }
    }
  }

  return {
    async post({ url, body, headers }, signal) {
      const span = tracer?.begin('webhook', 'PRODUCER', { 'server.address': new URL(url).hostname })
      const traced = span === undefined ? headers : { ...headers, traceparent: span.traceparent }
      const outcome = await attempt({ url, body, headers: traced }, signal)
      span?.end(outcome.failure && `${outcome.status ?? 'unreachable'}`)
      return outcome
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}

/** Idle connections are closed before most receivers close them. */
const AGENT_OPTIONS = { keepAlive: true, maxFreeSockets: 8, timeout: 30_000, scheduling: 'lifo' } as const

function discard(response: http.IncomingMessage): void {
  let size = 0
  response.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > MAX_ANSWER_BYTES) response.destroy()
  })
  response.on('error', () => {})
  const late = setTimeout(() => response.destroy(), MAX_ANSWER_MS)
  response.on('close', () => clearTimeout(late))
}

function outcomeOf({ statusCode: status = 0, headers }: http.IncomingMessage, now: Date): Outcome {
  if (status >= 200 && status < 300) return { status }
  const failure = status >= 300 && status < 400 ? 'it redirects, which is not followed' : `it answered ${status}`
  return { status, failure, retryAt: readRetryAfter(headers['retry-after'], now) }
}

/** In words that tell nothing about the network of this service. */
function explain(error: unknown): string {
  if (error instanceof PrivateAddressError) return 'its name has an address that is not public'
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException
  if (/^query|^getaddrinfo/.test(syscall) || code === 'ENOTFOUND') return 'its name has no address'
  if (/CERT|SELF_SIGNED|TLS|SSL|VERIFY/.test(code)) return `TLS failed: ${code}`
  return code === 'ECONNREFUSED' || code === 'EHOSTUNREACH' || code === 'ENETUNREACH' || code === 'ETIMEDOUT'
    ? 'it cannot be connected to'
    : 'the connection broke off'
}

/** Without the threads of `lookup`, of which a slow name server could take all. */
const resolver = new dns.Resolver({ timeout: 2_000, tries: 2 })

async function resolveByDns(host: string): Promise<readonly string[]> {
  if (/^(?:.*\.)?localhost\.?$/i.test(host)) return ['127.0.0.1', '::1']
  const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
  const found = [ipv4, ipv6].flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  if (found.length === 0 && ipv4.status === 'rejected') throw ipv4.reason
  return found
}

/** Asks the machine for what the DNS has not: names of /etc/hosts and of search domains. */
async function resolveByMachine(host: string): Promise<readonly string[]> {
  const found = await resolveByDns(host).catch(() => [])
  return found.length > 0 ? found : (await dns.lookup(host, { all: true })).map(({ address }) => address)
}
