import type { ErrorCode, ToolError, UnavailableRoutes } from '@lifi/types'
import { isObject } from '../../../nodes/rpc-error.ts'

/** Why LI.FI gave no quote. Details are LI.FI's words. */
export type LifiFailure =
  /** INCONSISTENT: its answer cannot be right. REFUSED: LI.FI rejected the question as invalid. */
  | {
      readonly kind: 'TIMEOUT' | 'UNREACHABLE' | 'INCONSISTENT' | 'NO_ROUTE' | 'AMOUNT_TOO_SMALL' | 'REFUSED'
      readonly detail: string
    }
  | { readonly kind: 'QUOTA'; readonly seconds: number }
  | { readonly kind: 'UNAUTHORIZED' }

export const NO_ANSWER: LifiFailure = { kind: 'TIMEOUT', detail: 'no answer in time' }

type FailureKind = LifiFailure['kind']

/** @see https://docs.li.fi, "Error codes" */
const KIND_OF_CODE: Readonly<Record<`${ErrorCode}`, FailureKind>> = {
  1000: 'UNREACHABLE', // DefaultError
  1001: 'NO_ROUTE', // FailedToBuildTransactionError
  1002: 'NO_ROUTE', // NoQuoteError
  1003: 'NO_ROUTE', // NotFoundError
  1004: 'NO_ROUTE', // NotProcessableError
  1005: 'QUOTA', // RateLimitError
  1006: 'UNREACHABLE', // ServerError
  1007: 'NO_ROUTE', // SlippageError
  1008: 'UNREACHABLE', // ThirdPartyError
  1009: 'TIMEOUT', // TimeoutError
  1010: 'UNAUTHORIZED', // UnauthorizedError
  1011: 'REFUSED', // ValidationError
  1012: 'UNREACHABLE', // RpcFailure
  1013: 'REFUSED', // MalformedSchema
}

const KIND_OF_STATUS: Readonly<Record<number, FailureKind>> = {
  400: 'REFUSED',
  401: 'UNAUTHORIZED',
  403: 'UNAUTHORIZED',
  404: 'NO_ROUTE',
  408: 'TIMEOUT',
  422: 'REFUSED',
}

/** Codes by which bridges and exchanges say that the amount is too small. */
const TOO_SMALL = new Set(['AMOUNT_TOO_LOW', 'FEES_HIGHER_THAN_AMOUNT'])

/** How long a quota counts as used up where the answer does not say. */
const USUAL_PAUSE_MS = 60_000

/** The longest pause that is believed: LI.FI's windows last two hours. */
const MAX_PAUSE_MS = 2 * 60 * 60 * 1_000

/** A parsed body; not `ok` where it is not JSON. */
export type ParsedBody = { readonly ok: true; readonly value: unknown } | { readonly ok: false }

/** An answer without a quote. */
interface FailedAnswer {
  readonly status: number
  readonly body: ParsedBody
  readonly headers: Headers
  /** Removed from the details, where LI.FI might repeat it. */
  readonly apiKey?: string | undefined
}

/** Reads `{message, code, errors}` as far as possible. */
export function failureOfAnswer({ status, body, headers, apiKey }: FailedAnswer): LifiFailure {
  const { message, code, errors } = fieldsOf(body)
  const kind = status === 429 ? 'QUOTA' : (KIND_OF_CODE[code as `${ErrorCode}`] ?? kindOfStatus(status, body))
  const codes = toolCodesOf(errors)
  const said = codes.length > 0 ? codes.join(', ') : message
  const detail = withoutKey(said === '' ? `HTTP status ${status}` : said, apiKey)
  if (kind === 'UNAUTHORIZED') return { kind }
  if (kind === 'QUOTA') return { kind, seconds: Math.ceil((pauseOf(headers) ?? USUAL_PAUSE_MS) / 1_000) }
  return { kind: kind === 'NO_ROUTE' && isTooSmall(codes) ? 'AMOUNT_TOO_SMALL' : kind, detail }
}

/** A body that is not JSON comes from a gateway in front of LI.FI, whatever its status. */
function kindOfStatus(status: number, body: ParsedBody): FailureKind {
  if (status === 200) return 'INCONSISTENT'
  return body.ok ? (KIND_OF_STATUS[status] ?? 'UNREACHABLE') : 'UNREACHABLE'
}

function fieldsOf(body: ParsedBody): { message: string; code: unknown; errors: unknown } {
  const fields: Record<string, unknown> = body.ok && isObject(body.value) ? body.value : {}
  const { message, code, errors } = fields
  return { message: typeof message === 'string' ? message : '', code, errors }
}

/** The codes of tools' errors, in a list or grouped by paths. */
function toolCodesOf(errors: unknown): string[] {
  const listed = Array.isArray(errors) ? errors : []
  const { failed } = (isObject(errors) ? errors : {}) as Partial<Record<keyof UnavailableRoutes, unknown>>
  const ofPaths = (Array.isArray(failed) ? failed : []).flatMap((route: unknown) => {
    const { subpaths } = (isObject(route) ? route : {}) as { subpaths?: unknown }
    return isObject(subpaths) ? Object.values(subpaths).flat() : []
  })
  const codes = [...listed, ...ofPaths].map((error: unknown) =>
    isObject(error) ? (error as Partial<Record<keyof ToolError, unknown>>).code : undefined,
  )
  return [...new Set(codes.filter((code) => typeof code === 'string'))]
}

/** Whether some tool finds the amount too small, and no other gives another reason. */
function isTooSmall(codes: readonly string[]): boolean {
  return (
    codes.some((code) => TOO_SMALL.has(code)) &&
    codes.every((code) => TOO_SMALL.has(code) || code === 'NO_POSSIBLE_ROUTE')
  )
}

/** The pause that an answer asks for, in milliseconds. */
export function pauseOf(headers: Headers): number | undefined {
  const seconds = countOf(headers, 'ratelimit-reset') ?? countOf(headers, 'retry-after')
  return seconds === undefined ? undefined : Math.min(seconds * 1_000, MAX_PAUSE_MS)
}

/** The whole number of a header. */
export function countOf(headers: Headers, name: string): number | undefined {
  const text = headers.get(name)?.trim() ?? ''
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined
}

function withoutKey(text: string, apiKey: string | undefined): string {
  return apiKey === undefined ? text : text.replaceAll(apiKey, '…')
}
