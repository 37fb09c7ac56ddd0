/** Reads what a wallet threw. Libraries and wallets wrap errors in errors, and some throw text, numbers or nothing. */

export interface ErrorFacts {
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

export function readError(thrown: unknown): ErrorFacts {
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
