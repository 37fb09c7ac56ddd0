import { create, type JsonValue, type MessageInitShape, toJson } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { ErrorInfoSchema } from '../gen/google/rpc/error_details_pb.js'
import {
  ExportPaymentsRequest_Format,
  ExportPaymentsRequestSchema,
} from '../gen/payments/v1/payment_search_service_pb.js'
import { toCallError } from './call-error.ts'
import type { Caller } from './calls.ts'

/** What an export as CSV may set. */
export interface ExportCsvOptions {
  readonly signal?: AbortSignal | undefined
}

/**
 * The payments that match as CSV in UTF-8, in pieces as they come. The service writes CSV over plain HTTP alone.
 *
 * @throws WaybillCallError when the export is refused, fails before its end, or is cut off (`NETWORK`), also by a proxy that ends it properly
 */
export async function* exportCsv(
  { baseUrl, headers, fetch = globalThis.fetch }: Caller,
  filter: MessageInitShape<typeof ExportPaymentsRequestSchema>,
  { signal }: ExportCsvOptions = {},
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  const request = create(ExportPaymentsRequestSchema, filter)
  request.format = ExportPaymentsRequest_Format.CSV
  const query = new URLSearchParams(parametersOf('', toJson(ExportPaymentsRequestSchema, request)))
  let tail = ''
  let quotes = 0
  try {
    const answer = await fetch(`${baseUrl}/v1/payments:export?${query}`, { headers, signal: signal ?? null })
    if (!answer.ok || answer.body === null) throw await readError(answer)
    const decoder = new TextDecoder()
    for await (const chunk of chunksOf(answer.body)) {
      tail = (tail + decoder.decode(chunk, { stream: true })).slice(-MAX_ERROR_LINE)
      for (const byte of chunk) if (byte === QUOTE) quotes++
      yield chunk
    }
  } catch (thrown) {
    signal?.throwIfAborted()
    throw toCallError(thrown)
  }
  const [, reason, message] = ERROR_LINE.exec(tail) ?? []
  if (reason !== undefined) throw toCallError(errorOf(Code.Aborted, reason, message ?? ''))
  // A whole file ends with an empty line, which does not stand within a cell.
  if (tail.endsWith('\r\n\r\n') && quotes % 2 === 0) return
  throw toCallError(errorOf(Code.Unavailable, 'NETWORK', 'the export was cut off before its end'))
}

const QUOTE = 0x22

/** An export that fails half-way says so in its last line. */
const ERROR_LINE = /(?:^|\n)error,([A-Z_]+),(.*)\r?\n?$/
const MAX_ERROR_LINE = 4096

/** A field of a message within is a parameter of its own: `exclude.status=FAILED`. */
function parametersOf(name: string, value: JsonValue): [name: string, value: string][] {
  if (Array.isArray(value)) return value.flatMap((each) => parametersOf(name, each))
  if (typeof value !== 'object' || value === null) return [[name, String(value)]]
  return Object.entries(value).flatMap(([field, each]) => parametersOf(name === '' ? field : `${name}.${field}`, each))
}

// Not every browser iterates over a stream.
async function* chunksOf(body: ReadableStream<Uint8Array<ArrayBuffer>>) {
  const reader = body.getReader()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

interface ErrorBody {
  readonly message?: string
  readonly details?: readonly { readonly reason?: string }[]
}

async function readError(answer: Response): Promise<ConnectError> {
  const body = (await answer.json().catch(() => ({}))) as ErrorBody
  const message = body.message ?? `the service answered with status ${answer.status}`
  const reason = body.details?.find((detail) => detail.reason !== undefined)?.reason ?? 'NONE'
  return errorOf(codes[answer.status] ?? Code.Unknown, reason, message, answer.headers)
}

const codes: Readonly<Record<number, Code>> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  429: Code.ResourceExhausted,
  503: Code.Unavailable,
  504: Code.DeadlineExceeded,
}

function errorOf(code: Code, reason: string, message: string, headers?: Headers): ConnectError {
  return new ConnectError(message, code, headers, [{ desc: ErrorInfoSchema, value: { reason, domain: 'waybill' } }])
}
