/**
 * Who may call the demo's servers: programs on this machine, and wallets in browsers, but no page. A page could otherwise call the nodes,
 * whose accounts are unlocked: by a form or a `fetch` to loopback, or by a name of its own that it lets point there (DNS rebinding).
 */
import type { IncomingMessage } from 'node:http'
import { isLoopbackAuthority } from '../../domain/ip-network.ts'

/** Why a call is refused. */
export interface Refusal {
  status: number
  message: string
}

/** Extensions, such as wallets, have origins that no page can have. */
const EXTENSION = /^[a-z][a-z-]*-extension:\/\//

const JSON_TYPE = /^application\/json\s*(?:;|$)/i

/** @returns why the caller is none of those, or sends what a form can send; undefined for nothing */
export function refuseForeign({ method, headers }: IncomingMessage): Refusal | undefined {
  const { host = '', origin, 'content-type': type = '' } = headers
  if (!isLoopbackAuthority(host)) {
    return { status: 403, message: `the host "${host}" is not served by the demo: call it as localhost or 127.0.0.1` }
  }
  if (origin !== undefined && !EXTENSION.test(origin)) {
    return { status: 403, message: `pages of ${origin} may not call the demo; programs and wallets may` }
  }
  if (method === 'POST' && !JSON_TYPE.test(type)) {
    return { status: 415, message: `Content-Type is "${type}": send application/json` }
  }
  return undefined
}
