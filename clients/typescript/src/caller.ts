import { createConnectTransport } from '@connectrpc/connect-web'
import type { Caller } from './calls.ts'

/** Where the service is and who calls it. */
export interface WaybillOptions {
  /** Address of the service, `https://pay.example.com`. */
  readonly baseUrl: string
  /** An account's key (`wb_…`) on a server, a publishable one (`wbp_…`) in a page. */
  readonly apiKey: string
  /** The account, where the key is a platform's. */
  readonly account?: string | undefined
  /** Default: `fetch` of the runtime. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Time for a call with its retries. Default: 30,000. Streams have no limit. */
  readonly timeoutMs?: number | undefined
  /** How often a call is tried again where that is safe. Default: 2. */
  readonly retries?: number | undefined
}

/** Connects calls to a service. */
export function createCaller({
  baseUrl,
  apiKey,
  account,
  fetch,
  timeoutMs = 30_000,
  retries = 2,
}: WaybillOptions): Caller {
  return {
    transport: createConnectTransport({
      baseUrl: baseUrl.replace(/\/+$/, ''),
      useBinaryFormat: true,
      ...(fetch !== undefined && { fetch }),
    }),
    headers: { 'x-api-key': apiKey, ...(account !== undefined && { 'x-account': account }) },
    timeoutMs,
    retries,
  }
}
