import { REVERT_CODE, type RpcErrorKind, type RpcRefusal, wordsOf } from './rpc-error.ts'

/**
 * What a node's error means. Providers agree on words more than on codes: -32005 is a rate limit at one and a range limit at another. So the
 * words are judged first. test/support/chains/node-profiles.ts holds what each provider says.
 */

const RATE =
  /rate.?limit|requests? rate|too many requests|request limit|requests? count exceeded|exceeded.*(quota|capacity|compute units)|quota (is |has been )?exceeded|insufficient quota|payment required|(capacity|credit|throughput|call) limit|throttl|\bRPS\b|per second|\d\s?\/\s?(s|sec|second)\b|retry in \d/i
/** The HTTP status of a quota that is used up. Some providers repeat it as the code of the JSON-RPC error. */
export const QUOTA_STATUS = 402
const RATE_CODES = new Set([429, QUOTA_STATUS, -32007, -32009, -32090, -32605, -32607])
const QUOTA = /\b(daily|monthly|per (day|month)|capacity limit|quota|payment required)\b/i
const BEHIND =
  /beyond (the )?(current )?(head|latest)|^unknown block\b|requested data (is )?not available|after (the )?last accepted block/i
const ADDRESSES = /addresses or topics|(max(imum)?|too many|number of) addresses|\d+ filters\b.*limit/i
const NEEDS_ADDRESS = /specify an? (contract )?address/i
const BATCH =
  /batch (of more|too large|limit|size)|max(imum)? batch|batch(es|ing|ed)?\b.*(not (allowed|supported|enabled)|disabled|exceed|too (large|many|big))/i
const PRUNED = /pruned|unknown state|missing trie node/i
const NO_BACKEND = /no (nodes?|backends?) (is |are )?(currently )?(available|healthy)/i
const TIME = /(request|query|execution) time(d )?.?out/i
const SIZE = /response (size|(is )?too (big|large))|backend response|(answer|result) (is )?too (big|large)/i
const LOGS = /results|too many logs|logs (matched|requested)|response|\bbytes\b/i
const RANGE =
  /ranges?\b|too wide|too many blocks|(number of|most [\d,]+) (requested )?blocks|smaller than size|returned more than|exceeds? (the )?limit|max(imum)? results|blocks? distance/i
const REVERTED =
  /revert|vm execution error|invalid opcode|(invalid|bad) (jump|instruction)|out of gas|stack (under|over)flow/i
const PRUNED_CODE = 4444
const LIMIT_CODE = -32005

/**
 * Sorts a node's error by what the caller can do about it.
 *
 * @param method - that was called: only a question for logs can be made smaller
 */
export function classifyRefusal(refusal: RpcRefusal, method: string): RpcErrorKind {
  const { code } = refusal
  const words = wordsOf(refusal)
  const isAboutLogs = method === 'eth_getLogs'
  // The contract wrote what follows these words: it may sound like any other refusal.
  if (code === REVERT_CODE || /^execution reverted/i.test(words)) return 'REVERTED'
  if (RATE.test(words) || code === 429) return 'RATE_LIMITED'
  if (BEHIND.test(words)) return 'BEHIND'
  if (ADDRESSES.test(words)) return 'TOO_MANY_ADDRESSES'
  if (isRefusedAtAnySize(refusal)) return 'REFUSED'
  if (BATCH.test(words)) return 'BATCH_REFUSED'
  if (SIZE.test(words) || (isAboutLogs && wantsSmallerRange(words))) return 'TOO_LARGE'
  if (NO_BACKEND.test(words)) return 'UNREACHABLE'
  if (TIME.test(words)) return 'TIMEOUT'
  if (code !== undefined && RATE_CODES.has(code)) return 'RATE_LIMITED'
  if (REVERTED.test(words)) return 'REVERTED'
  if (code === LIMIT_CODE) return isAboutLogs ? 'TOO_LARGE' : 'RATE_LIMITED'
  return 'REFUSED'
}

/** Whether a refusal of `eth_getLogs` is for the size of the range or of its answer. */
function wantsSmallerRange(words: string): boolean {
  return RANGE.test(words) || LOGS.test(words) || TIME.test(words) || /no backends? is currently healthy/i.test(words)
}

/** Whether a smaller range would be refused as well: the filter lacks an address, or the node has pruned those blocks. */
export function isRefusedAtAnySize(refusal: RpcRefusal): boolean {
  const words = wordsOf(refusal)
  return NEEDS_ADDRESS.test(words) || PRUNED.test(words) || refusal.code === PRUNED_CODE
}

/** Whether a range was refused for the number of its logs: another range as wide may have fewer. */
export function isAboutLogCount(refusal: RpcRefusal): boolean {
  return LOGS.test(wordsOf(refusal))
}

/** The most logs in one answer, where the refusal names it. */
export function logsHintOf(refusal: RpcRefusal): number | undefined {
  const words = wordsOf(refusal)
  if (!/results|logs/i.test(words)) return undefined
  const hint = /(?:more than|limit of|max(?:imum)?\D*|filter:) (\d{1,7})\b(?! block)/i.exec(words)?.[1]
  return hint === undefined ? undefined : Number(hint)
}

/** Whether a daily or monthly quota is used up. */
export function isQuota(refusal: RpcRefusal): boolean {
  return refusal.code === QUOTA_STATUS || QUOTA.test(wordsOf(refusal))
}

/** The pause that the refusal asks for in words, such as `retry in 10m0s` or `backoff_seconds`, in milliseconds. */
export function retryAfterMsOf(refusal: RpcRefusal): number | undefined {
  const words = wordsOf(refusal)
  const backoff = /"?backoff_seconds"?\s*[:=]\s*(\d+(?:\.\d+)?)/i.exec(words)?.[1]
  if (backoff !== undefined) return Math.ceil(Number(backoff) * 1_000)
  const [, hours = '0', minutes = '0', seconds = '0'] =
    /(?:retry|try again) (?:in|after) (?=\d)(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)\s?s)?/i.exec(words) ?? []
  const waitMs = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000
  return waitMs > 0 ? Math.ceil(waitMs) : undefined
}

/** The most calls in one batch, where the refusal names a number. Only a hint: the number may mean something else. */
export function batchHintOf(refusal: RpcRefusal): number | undefined {
  const hint = /(?:more than|limit|max(?:imum)?\D*) (\d{1,5})\b/i.exec(wordsOf(refusal))?.[1]
  return hint === undefined ? undefined : Math.max(1, Number(hint))
}

/**
 * The most blocks in one range, where the refusal names a number or a range. Only a hint: the number may mean something else.
 *
 * @param blocks - of the range that was refused; only a smaller number is a hint
 */
export function rangeHintOf(refusal: RpcRefusal, blocks: number): number | undefined {
  const words = wordsOf(refusal)
  const proposed = /\[?(0x[0-9a-f]+)\s*[,-]\s*(0x[0-9a-f]+)\]?/i.exec(words) ?? /range (\d+)-(\d+)/i.exec(words)
  const width = proposed === null ? 0 : Number(proposed[2]) - Number(proposed[1]) + 1
  if (width >= 1 && width < blocks) return width
  const numbers = [...words.matchAll(/(?<![\w.])(\d[\d,]*)(k)?\b(?!\s*(?:results|logs|bytes))/gi)].map(
    ([, digits = '', thousands]) => Number(digits.replaceAll(',', '')) * (thousands === undefined ? 1 : 1_000),
  )
  return numbers.findLast((number) => number >= 1 && number < blocks)
}
