import { waybillError } from '../../errors/waybill-error.ts'
import type { CountOpen } from '../calls/require-caller.ts'
import { encodeBody, type Inbound, matchesEtag, methodNotAllowed } from './http-answer.ts'

/** A file that anybody may read. */
export interface OpenFile {
  readonly contentType: string
  readonly body: Uint8Array | string
  readonly etag: string
  /** Whether its path changes with its content, so that it may be kept for ever. */
  readonly isImmutable?: boolean
  /** Content-Security-Policy, for pages. */
  readonly policy?: string
}

/** Files that the process serves without a key: the description of the API, and what a browser is shown. */
export interface OpenFiles {
  /** Whether a path is among theirs, though there may be no file. */
  readonly covers: (rawPath: string) => boolean
  /** @returns undefined if there is no such file */
  readonly read: (rawPath: string) => Promise<OpenFile | { readonly location: string } | undefined>
  /** Paths that may be suggested for an unknown path. */
  readonly paths: readonly string[]
}

export const openFileMethods = ['GET', 'HEAD', 'OPTIONS']

const MIN_COMPRESSED_BYTES = 1024
const MAX_AGE_SEC = 31_536_000

/**
 * Sends a file. Pages of every origin may read it: it is the same for everybody.
 *
 * @param countOpen - counts the answer for the caller's address
 * @throws WaybillError METHOD_NOT_ALLOWED, ROUTE_NOT_FOUND, RATE_LIMITED
 */
export async function sendOpenFile(
  { exchange, commonHeaders, clientAddress, reportLimit }: Inbound,
  { read }: OpenFiles,
  countOpen: CountOpen,
): Promise<void> {
  if (exchange.method !== 'GET' && exchange.method !== 'HEAD') throw methodNotAllowed(exchange, openFileMethods)
  const file = await read(exchange.rawPath)
  if (file === undefined) {
    throw waybillError('ROUTE_NOT_FOUND', { path: exchange.rawPath, suggestion: 'begin at /docs' })
  }
  countOpen(clientAddress(), reportLimit)
  const open = { ...commonHeaders, 'access-control-allow-origin': '*', vary: 'accept-encoding' }
  if ('location' in file) {
    exchange.send({ status: 308, headers: { ...open, 'cache-control': 'no-cache', location: file.location } })
    return
  }
  const headers = {
    ...open,
    'cache-control': file.isImmutable === true ? `public, max-age=${MAX_AGE_SEC}, immutable` : 'public, no-cache',
    etag: file.etag,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    ...(file.policy !== undefined && { 'content-security-policy': file.policy }),
  }
  if (matchesEtag(exchange.headers['if-none-match'], file.etag)) {
    exchange.send({ status: 304, headers })
    return
  }
  const { body, headers: encoding } = await encodeBody(
    file.body,
    exchange.headers['accept-encoding']?.toString(),
    MIN_COMPRESSED_BYTES,
  )
  exchange.send({ status: 200, headers: { ...headers, ...encoding, 'content-type': file.contentType }, body })
}
