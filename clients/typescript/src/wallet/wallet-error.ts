/** What an error of a wallet says about the money, by the step at which it came. Pure: it reads the error and asks nobody. */
import type { PayOutcome } from './outcome.ts'
import { NoAnswerError } from './provider.ts'

/** What the wallet was asked for. PAY: also a batch, which holds the payment. STATUS asks about a batch that the wallet has taken. */
export type WalletStep = 'CONNECT' | 'SWITCH_CHAIN' | 'APPROVE' | 'SWAP' | 'PAY' | 'STATUS'

export type WalletFailure = Extract<PayOutcome, { readonly outcome: 'REFUSED' | 'FAILED' | 'UNKNOWN' }>

/** Codes of EIP-1193, EIP-1474, EIP-3326 and EIP-5792. */
const UNKNOWN_CHAIN = 4902
export const INTERNAL_ERROR = -32603

/** The payer said no: EIP-1193, then WalletConnect's four (the session, its chains, its methods, its events). */
const REFUSALS: ReadonlySet<number | string> = new Set([4001, 5000, 5001, 5002, 5003, 'ACTION_REJECTED'])

/** After these the wallet has certainly not sent the batch, and does not know it or will not make it one step. */
const NO_BATCH: ReadonlySet<number | string> = new Set([4200, -32601, 5750, 5760])

/**
 * The wallet has not tried: not authorised (4100, WalletConnect's 3001 to 3005), unsupported (4200, 5100 to 5104, 5700, 5710, -32601, -32004,
 * -32006), disconnected when it was asked (4900, 4901), unknown chain (4902), no valid request (-32600, -32602), too large (5740), not in
 * one step (5750, 5760).
 */
const NOT_TRIED: ReadonlySet<number | string> = new Set([
  4100, 4200, 4900, 4901, 4902, -32600, -32601, -32602, -32004, -32006, 3001, 3002, 3003, 3004, 3005, 5100, 5101, 5102,
  5103, 5104, 5700, 5710, 5740, 5750, 5760,
])

/**
 * The wallet or its node has looked at the transaction and refused it, unless the words say otherwise: -32001 not found, -32002 another
 * question is open, -32003 rejected, -32005 too many calls, -32010 rejected (Nethermind), -32015 and 3 reverted, -32700 not read. Nodes use
 * -32000, as wallets use -32603, for whatever has no code of its own: there the words decide.
 */
const TURNED_DOWN: ReadonlySet<number | string> = new Set([-32001, -32002, -32003, -32005, -32010, -32015, -32700, 3])

/** What ethers says of both. */
const NAMES_OF_NOT_SENT: ReadonlySet<number | string> = new Set([
  'UNSUPPORTED_OPERATION',
  'INVALID_ARGUMENT',
  'MISSING_ARGUMENT',
  'UNEXPECTED_ARGUMENT',
  'INSUFFICIENT_FUNDS',
  'UNPREDICTABLE_GAS_LIMIT',
  'CALL_EXCEPTION',
  'NONCE_EXPIRED',
  'REPLACEMENT_UNDERPRICED',
])

const SAID_NO = 'reject(?:ed|s)?|den(?:ied|y)|refused?|declined?|cancel(?:l?ed)?|disapproved?|dismissed|abort(?:ed)?'
/** `User denied transaction signature`, `Rejected by user`, `UserRejectedRequestError`, `cancelled`; 0x6985 is a Ledger's. */
const REFUSAL_WORDS = [
  new RegExp(`user[\\s_'’-]*(?:has|have|had)?[\\s_-]*(?:${SAID_NO})`, 'i'),
  new RegExp(
    `\\b(?:${SAID_NO})\\b[\\s\\w]{0,20}\\bby[\\s_]+(?:the )?(?:user|owner|signer|payer|person|customer)\\b`,
    'i',
  ),
  /^(?:error: )?(?:(?:the |your )?(?:request|transaction|tx|signature|signing|operation|action|payment|approval|permission)s?(?: request)?(?: was| has been)?:? )?(?:reject(?:ed)?|denied|refused|declined|cancel(?:l?ed)?)[.! ]*$/i,
  /\buser closed (?:the )?(?:modal|pop-?up|window|dialog)|^(?:the )?(?:modal|pop-?up|window|dialog)(?: was)? closed(?: by (?:the )?user)?[.! ]*$/i,
  /\buser did(?: not|n[’']t) (?:approve|confirm|sign)|conditions? of use not satisfied|\b0x6985\b/i,
]

/** The connection failed, or the network has the transaction already: the question may have been answered with yes. */
const AMBIGUOUS_WORDS =
  /\balready (?:known|imported|submitted|exists|in (?:the )?(?:mem|tx|transaction )?pool)|\bknown transaction|\bsame hash|\btime[ds]?[ -]?out\b|timeout|deadline exceeded|context cancel|fail(?:ed|ure) to fetch|fetch failed|load failed|network (?:error|request failed)|socket|ECONN|hang up|hung up|connection (?:was |is )?(?:lost|closed|reset|refused|interrupted|aborted|failed|error)|lost (?:the )?connection|disconnected|unreachable|bad gateway|\b(?:status|http|error|code)(?: code)?[ :=]*50[0234]\b|\baborted\b|\b(?:request|session|proposal) (?:has )?expired|(?:no|not) respon/i

/**
 * What wallets and nodes say of a transaction that they did not send. `nonce too low` is among them: had an earlier try of the wallet used the
 * nonce, it would be mined, and the service would refuse another quote.
 */
const NOTHING_SENT_WORDS =
  /insufficient|not enough|\bexceeds\b|intrinsic gas|oversized|overflow|higher than|gas (?:price |limit )?(?:is )?too (?:low|high)|underpriced|fee (?:per gas )?(?:is )?(?:too low|less than|cannot be)|nonce (?:is )?too (?:low|high)|nonce has already been used|revert|always fail|cannot estimate gas|estimate gas fail|pool is full|\bpending request\b|already (?:pending|processing|open)|\binvalid (?:request|param|argument|address|sender|input|transaction|chain)|unsupported|not supported|not implemented|does(?: not|n[’']t) (?:exist|support)|method not found|unauthori[sz]ed|not (?:been )?authori[sz]ed|\b(?:is |are )?locked\b|LockedDevice|unlock|0x5515|not connected|call connect\(\)|no (?:account|device)|device not found|blind signing/i

const UNKNOWN_CHAIN_WORDS =
  /unrecogni[sz]ed chain|unknown chain|chain(?: ?id)? .{0,40}(?:not (?:been )?(?:added|configured|recogni[sz]ed|found))|adding the chain/i

type Kind = 'REFUSED' | 'NOTHING_SENT' | 'AMBIGUOUS'

function kindOf({ codes, words }: ErrorFacts): Kind {
  const says = (pattern: RegExp) => words.some((each) => pattern.test(each))
  if (codes.some((code) => REFUSALS.has(code))) return 'REFUSED'
  // 5750 says that the payer refused to upgrade the account: the payment itself may still be asked for.
  if (!codes.some((code) => NO_BATCH.has(code)) && REFUSAL_WORDS.some(says)) return 'REFUSED'
  if (codes.some((code) => NOT_TRIED.has(code) || NAMES_OF_NOT_SENT.has(code))) return 'NOTHING_SENT'
  if (says(AMBIGUOUS_WORDS)) return 'AMBIGUOUS'
  return codes.some((code) => TURNED_DOWN.has(code)) || says(NOTHING_SENT_WORDS) ? 'NOTHING_SENT' : 'AMBIGUOUS'
}

/**
 * How a payment ends with an error of the wallet. REFUSED: the payer said no. FAILED: nothing was paid, with the wallet's words. UNKNOWN, only at
 * PAY and STATUS: nothing tells whether the payment was sent, as after a lost connection, or an internal error without words.
 *
 * @param error - anything that a provider can throw: errors within errors, codes as text, text alone, undefined
 */
export function judgeWalletError(error: unknown, step: WalletStep): WalletFailure {
  const facts = readError(error)
  const isSilence = error instanceof NoAnswerError
  const reported = { code: facts.number, message: facts.message }
  const kind = isSilence ? 'AMBIGUOUS' : kindOf(facts)
  if (step === 'STATUS') return { outcome: 'UNKNOWN', reason: 'BATCH_LOST', ...reported }
  if (kind === 'REFUSED') return { outcome: 'REFUSED' }
  if (kind === 'AMBIGUOUS' && step === 'PAY')
    return { outcome: 'UNKNOWN', reason: isSilence ? 'NO_ANSWER' : 'WALLET_ERROR', ...reported }
  if (step === 'SWITCH_CHAIN') return { outcome: 'FAILED', reason: 'WRONG_CHAIN', ...reported }
  return { outcome: 'FAILED', reason: isSilence ? 'NO_ANSWER' : 'WALLET_ERROR', ...reported }
}

/** Whether the wallet does not know the chain that it was asked to go to, and may be asked to add it. */
export function isUnknownChain(error: unknown): boolean {
  const { codes, words } = readError(error)
  return codes.includes(UNKNOWN_CHAIN) || words.some((each) => UNKNOWN_CHAIN_WORDS.test(each))
}

/** Whether the wallet makes no batch of it, and nothing was sent: the steps may be sent one by one. */
export function isNoBatch(error: unknown): boolean {
  const { codes, number } = readError(error)
  return number !== undefined && NO_BATCH.has(number) && !codes.some((code) => REFUSALS.has(code))
}

/** Reads what a wallet threw. Libraries and wallets wrap errors in errors, and some throw text, numbers or nothing. */

interface ErrorFacts {
  /** Every code within, the outermost first: numbers, those written as text too, and ethers' names. */
  readonly codes: readonly (number | string)[]
  /** The outermost number. */
  readonly number: number | undefined
  /** Every text within that people or programs wrote, the outermost first. */
  readonly words: readonly string[]
  /** What to show of it: the wallet's own words. */
  readonly message: string
}

/** Texts of libraries that say no more than that there was an error. */
const EMPTY_WORDS =
  /^(?:(?:an? )?(?:internal|unknown|unexpected|server)?[ _]?(?:json-rpc |rpc )?error(?: (?:was received|occurred))?|could not coalesce error|request failed|\[object object\]|undefined|null)?[.! ]*$/i

const MAX_PARTS = 40
const MAX_MESSAGE = 300
const MAX_JSON = 10_000

function readError(thrown: unknown): ErrorFacts {
  const codes: (number | string)[] = []
  const words: string[] = []
  const seen = new Set<unknown>()
  const queue: unknown[] = [thrown]
  for (let next = 0; next < queue.length && next < MAX_PARTS; next++) {
    const part = queue[next]
    if (typeof part === 'number') codes.push(part)
    else if (typeof part === 'string') readText(part, codes, words, queue)
    else if (typeof part === 'object' && part !== null && !seen.has(part)) {
      seen.add(part)
      readObject(part, codes, queue)
    }
  }
  const said = words.find((text) => !EMPTY_WORDS.test(text) && !ERROR_NAME.test(text)) ?? 'the wallet gave no reason'
  const message = said.length > MAX_MESSAGE ? `${said.slice(0, MAX_MESSAGE)}…` : said
  return { codes, number: codes.find((code) => typeof code === 'number'), words, message }
}

/** `UserRejectedRequestError` */
const ERROR_NAME = /^[A-Z]\w*(?:Error|Exception)$/

function readText(text: string, codes: (number | string)[], words: string[], queue: unknown[]): void {
  const trimmed = text.trim()
  // Data of a call that was reverted is no text.
  if (trimmed === '' || /^0x[0-9a-f]*$/i.test(trimmed)) return
  if (/^-?\d{1,6}$/.test(trimmed)) {
    codes.push(Number(trimmed))
    return
  }
  // Some wallets put the error of their node into the text as JSON.
  const [json] = trimmed.length <= MAX_JSON ? (/\{[^]*\}/.exec(trimmed) ?? []) : []
  const inner = json === undefined ? undefined : parsed(json)
  if (inner !== undefined) queue.push(inner)
  const isAtEnd = json !== undefined && inner !== undefined && trimmed.endsWith(json)
  words.push(isAtEnd ? trimmed.slice(0, -json.length).trim() : trimmed)
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/** Where libraries and wallets keep the text and the error that they wrap; viem's and ethers' `message` quotes the whole call beside them. */
const TEXTS = ['details', 'shortMessage', 'reason', 'name'] as const
const WRAPPED = ['error', 'cause', 'originalError', 'innerError', 'data', 'info', 'body', 'errors'] as const

function readObject(part: object, codes: (number | string)[], queue: unknown[]): void {
  const read = (name: string): unknown => {
    try {
      return (part as Record<string, unknown>)[name]
    } catch {
      // a getter that throws
      return undefined
    }
  }
  const code = read('code')
  if (typeof code === 'number') codes.push(code)
  else if (typeof code === 'string') codes.push(/^-?\d{1,6}$/.test(code.trim()) ? Number(code) : code)
  const texts = TEXTS.map(read)
  const message = texts[1] === undefined ? read('message') : undefined
  const items: unknown[] = Array.isArray(part) ? part.slice(0, MAX_PARTS) : []
  const inside = [...texts, message, ...WRAPPED.map(read), ...items]
  queue.push(...inside.filter((each) => typeof each === 'string' || (typeof each === 'object' && each !== null)))
}
