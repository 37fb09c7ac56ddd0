import { waybillError } from '../../errors/waybill-error.ts'
import type { CountOpen } from '../calls/require-caller.ts'
import {
  type ContentEncoding,
  chooseEncoding,
  type EncodedBody,
  encodeBody,
  type Inbound,
  matchesEtag,
  methodNotAllowed,
  qualitiesOf,
} from './http-answer.ts'

/** A file that anybody may read. */
export interface OpenFile {
  readonly contentType: string
  readonly body: Uint8Array | string
  /** The body compressed beforehand, for large files that are read often; Brotli goes to whoever takes it. */
  readonly compressed?: Readonly<Record<ContentEncoding, Uint8Array>>
  readonly etag: string
  /** Whether its path changes with its content, so that it may be kept for ever. */
  readonly isImmutable?: boolean
  /** Content-Security-Policy, for pages; called after the answer is counted, since it may have to ask the database. */
  readonly policy?: string | (() => Promise<string>)
}

export interface Moved {
  readonly location: string
}

/** The file may be there soon; a browser asks again by itself. */
export interface NotBuilt {
  /** A sentence for whoever asked. */
  readonly notBuilt: string
}

/** Files that the process serves without a key: the description of the API, and what a browser is shown. */
export interface OpenFiles {
  /** Whether a path is among theirs, though there may be no file. */
  readonly covers: (rawPath: string) => boolean
  /** @returns undefined if there is no such file */
  readonly read: (rawPath: string, rawQuery?: string) => Promise<OpenFile | Moved | NotBuilt | undefined>
  /** Paths that may be suggested for an unknown path. */
  readonly paths: readonly string[]
}

export const openFileMethods = ['GET', 'HEAD', 'OPTIONS']

const MIN_COMPRESSED_BYTES = 1024
const MAX_AGE_SEC = 31_536_000

/**
 * Sends a file. Pages of every origin may read it: it is the same for everybody.
 *
 * @param countOpen - counts the answer for the caller's address. Files that a browser keeps are not counted: a page needs a dozen of them, and the
 *   people of an office share an address.
 * @throws WaybillError METHOD_NOT_ALLOWED, ROUTE_NOT_FOUND, RATE_LIMITED
 */
export async function sendOpenFile(
  { exchange, commonHeaders, clientAddress, reportLimit }: Inbound,
  { read }: OpenFiles,
  countOpen: CountOpen,
): Promise<void> {
  if (exchange.method !== 'GET' && exchange.method !== 'HEAD') throw methodNotAllowed(exchange, openFileMethods)
  const file = await read(exchange.rawPath, exchange.rawQuery)
  if (file === undefined) {
    throw waybillError('ROUTE_NOT_FOUND', { path: exchange.rawPath, suggestion: 'begin at /docs' })
  }
  if (!('isImmutable' in file && file.isImmutable)) countOpen(clientAddress(), reportLimit)
  const open = { ...commonHeaders, 'access-control-allow-origin': '*', vary: 'accept-encoding' }
  if ('location' in file) {
    exchange.send({ status: 308, headers: { ...open, 'cache-control': 'no-cache', location: file.location } })
    return
  }
  if ('notBuilt' in file) {
    const headers = { ...open, 'cache-control': 'no-store', refresh: '2', 'content-type': 'text/plain; charset=utf-8' }
    exchange.send({ status: 503, headers, body: `${file.notBuilt}\n` })
    return
  }
  const headers = {
    ...open,
    'cache-control': file.isImmutable === true ? `public, max-age=${MAX_AGE_SEC}, immutable` : 'public, no-cache',
    etag: file.etag,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    ...(file.policy !== undefined && { 'content-security-policy': await policyOf(file.policy) }),
  }
  if (matchesEtag(exchange.headers['if-none-match'], file.etag)) {
    exchange.send({ status: 304, headers })
    return
  }
  const { body, headers: encoding } = await encodeFile(file, exchange.headers['accept-encoding']?.toString())
  exchange.send({ status: 200, headers: { ...headers, ...encoding, 'content-type': file.contentType }, body })
}

function policyOf(policy: string | (() => Promise<string>)): Promise<string> | string {
  return typeof policy === 'string' ? policy : policy()
}

/** The encoded bodies of files that are read again and again: compressing one takes milliseconds, and anybody may ask for it. */
const encodedBodies = new WeakMap<OpenFile, Map<ContentEncoding | undefined, Promise<EncodedBody>>>()

function encodeFile(file: OpenFile, acceptEncoding: string | undefined): Promise<EncodedBody> | EncodedBody {
  const { body, compressed } = file
  if (compressed !== undefined) {
    const takesBrotli = (qualitiesOf(acceptEncoding ?? '').get('br') ?? 0) > 0
    const encoding = takesBrotli ? 'br' : chooseEncoding(acceptEncoding)
    if (encoding !== undefined) return { body: compressed[encoding], headers: { 'content-encoding': encoding } }
  }
  const encoding = chooseEncoding(acceptEncoding)
  const known = encodedBodies.get(file) ?? new Map<ContentEncoding | undefined, Promise<EncodedBody>>()
  encodedBodies.set(file, known)
  const encoded = known.get(encoding) ?? encodeBody(body, encoding, MIN_COMPRESSED_BYTES)
  known.set(encoding, encoded)
  return encoded
}

/** Puts several sets of files together; the first that covers a path answers for it. */
export function joinOpenFiles(sets: readonly OpenFiles[]): OpenFiles {
  const find = (rawPath: string) => sets.find(({ covers }) => covers(rawPath))
  return {
    paths: sets.flatMap(({ paths }) => paths),
    covers: (rawPath) => find(rawPath) !== undefined,
    read: async (rawPath, rawQuery) => find(rawPath)?.read(rawPath, rawQuery),
  }
}
