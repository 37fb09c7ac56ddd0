/**
 * The one table of reasons: of errors, of warnings on an answer, and of candidates that did not become a route.
 * `protocol/error-mapping.ts` alone knows which code and status a kind has on the wire.
 */

/** What sort of failure a reason is; decides the code on the wire. `NOTICE` never is an error. */
export type ReasonKind =
  | 'INVALID_INPUT'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'CONFLICT'
  | 'PRECONDITION'
  | 'LIMITED'
  | 'UNSUPPORTED'
  | 'CANCELLED'
  | 'TIMEOUT'
  | 'UNAVAILABLE'
  | 'INTERNAL'
  | 'NOTICE'

/** Where a reason can stand in an answer. */
export type Appearance = 'error' | 'warning' | 'unavailable'

interface ReasonEntry {
  readonly kind: ReasonKind
  readonly in: readonly Appearance[]
  /** What was wrong. `{name}` stands for a parameter. */
  readonly message: string
  /** What to do. Empty where the message says it. */
  readonly remedy: string
}

const error = ['error'] as const
const warning = ['warning'] as const
const unavailable = ['unavailable'] as const

export const reasons = {
  // Input: shape
  MISSING_FIELD: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field} is missing',
    remedy: 'send a value for {field}',
  },
  VALUE_TOO_LONG: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field} is too long: {detail}',
    remedy: 'send a shorter value',
  },
  TOO_MANY_VALUES: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field} has too many values: {detail}',
    remedy: 'send fewer values, or several calls',
  },
  INVALID_FIELD: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field} is not valid: {detail}',
    remedy: 'correct the value',
  },
  UNKNOWN_PARAMETER: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'unknown query parameter "{field}"',
    remedy: '{suggestion}',
  },
  DUPLICATE_PARAMETER: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'query parameter "{field}" is given more than once',
    remedy: 'send it once',
  },
  PATH_PARAMETER_IN_QUERY: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '"{field}" is a part of the path and cannot be a query parameter as well',
    remedy: 'remove the query parameter',
  },
  ONEOF_CONFLICT: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field} excludes another field that is given: {detail}',
    remedy: 'send one of them',
  },
  UNKNOWN_FIELD: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the message has an unknown field: {detail}',
    remedy: 'remove it, or generate the client anew from the current definitions',
  },
  UNKNOWN_ENUM_VALUE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field} has no value {value}',
    remedy: '{suggestion}',
  },
  MALFORMED_ESCAPE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'malformed percent-escape in "{value}"',
    remedy: 'write a percent sign as %25',
  },
  MALFORMED_URL: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the request target is not a valid path: {detail}',
    remedy: 'send a path that begins with / and is encoded after RFC 3986',
  },
  INVALID_UTF8: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field} is not valid UTF-8',
    remedy: 'encode text as UTF-8',
  },
  MALFORMED_BODY: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the body cannot be read: {detail}',
    remedy: 'send one message in the format that Content-Type names',
  },
  BODY_TOO_DEEP: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the body is nested deeper than {limit} levels',
    remedy: 'send a flatter body',
  },
  BODY_TOO_LARGE: {
    kind: 'LIMITED',
    in: error,
    message: 'the body is larger than {limit} bytes',
    remedy: 'send a smaller body',
  },
  BODY_TOO_COMPLEX: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the body holds more than {limit} fields and values',
    remedy: 'send fewer values, or several calls',
  },
  TOO_MANY_HEADERS: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the request has more than {limit} headers',
    remedy: 'send fewer headers',
  },
  HEADERS_TOO_LARGE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the request line and headers are larger than {limit} bytes',
    remedy: 'send fewer or shorter headers or query parameters',
  },
  MALFORMED_REQUEST: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'what came is no HTTP request: {detail}',
    remedy: 'speak HTTP/1.1, or HTTP/2 with prior knowledge',
  },
  REQUEST_TOO_SLOW: {
    kind: 'TIMEOUT',
    in: error,
    message: 'the request did not arrive within {timeoutMs} ms',
    remedy: 'send it faster, or a smaller one',
  },
  UNSUPPORTED_CONTENT_TYPE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'content type "{value}" is not understood here',
    remedy: 'send {expected}',
  },
  UNSTATED_COMPRESSION: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the message is compressed and the call does not say how',
    remedy: 'name the compression in grpc-encoding',
  },
  UNSUPPORTED_CONTENT_ENCODING: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'content encoding "{value}" is not understood here',
    remedy: 'send {expected}',
  },
  NOT_ACCEPTABLE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'none of the formats in Accept "{value}" can be given',
    remedy: 'accept {expected}',
  },
  // Input: values
  INVALID_ADDRESS: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: "{value}" is not an address: {detail}',
    remedy: 'send 0x and 40 hexadecimal digits, all in one case or with a right EIP-55 checksum, or a Tron address',
  },
  INVALID_AMOUNT: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: "{value}" is not an amount: {detail}',
    remedy: 'send a plain decimal number such as 100 or 0.05',
  },
  INVALID_PERCENTAGE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: "{value}" is not a percentage: {detail}',
    remedy: 'send a plain decimal number such as 0.5',
  },
  INVALID_FRACTION: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: "{value}" is not a fraction that is a plain decimal number and not negative',
    remedy: 'send a fraction such as 0.01, which is one percent',
  },
  INCOMPLETE_FEE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field} is given without {other}',
    remedy: 'send both or neither',
  },
  INVALID_PAYMENT_REFERENCE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: "{value}" is not a payment reference',
    remedy: 'send 16 hexadecimal digits, 0x before them optional',
  },
  INVALID_REQUEST_ID: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: "{value}" is not a request id',
    remedy: 'send 01 and 64 hexadecimal digits',
  },
  INVALID_SALT: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: "{value}" is not a salt',
    remedy: 'send 16 hexadecimal digits, or leave it out',
  },
  INVALID_TX_HASH: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: "{value}" is not a transaction hash',
    remedy: 'send 64 hexadecimal digits, 0x before them optional',
  },
  INVALID_PAYMENT_ID: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: "{value}" is not a payment id',
    remedy: 'send a UUID',
  },
  INVALID_DATE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: "{value}" is not a date: {detail}',
    remedy: 'send RFC 3339 with an offset, such as 2026-03-01T12:00:00Z, or a day such as 2026-03-01',
  },
  INVALID_RANGE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field} "{value}" lies beyond {other} "{otherValue}"',
    remedy: 'swap the two',
  },
  INVALID_LIMIT: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'limit {value} is not a page size',
    remedy: 'send a whole number from 0 to 2147483647; above 100 it counts as 100',
  },
  INVALID_REFERENCE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field} is not a reference: {detail}',
    remedy: 'send 1 to 256 characters without control characters',
  },
  INVALID_IDEMPOTENCY_KEY: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the header idempotency-key is not valid: {detail}',
    remedy: 'send 1 to 255 visible ASCII characters',
  },
  UNKNOWN_NETWORK: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: nobody knows a network "{value}"',
    remedy: '{suggestion}',
  },
  UNKNOWN_CURRENCY: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: nobody knows a currency "{value}"',
    remedy: '{suggestion}',
  },
  UNKNOWN_TIME_ZONE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: nobody knows a time zone "{value}"',
    remedy: '{suggestion}',
  },
  TOO_MANY_GROUPS: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the summary has more than {limit} groups',
    remedy: 'narrow the filters, or group by something coarser',
  },
  NETWORK_NOT_CONFIGURED: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: the network {value} is not served here',
    remedy: 'use one of: {known}',
  },
  CURRENCY_NOT_ON_NETWORK: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: {value} is not a token of {network} that is served here',
    remedy: 'use one of: {known}',
  },
  CURRENCY_MISMATCH: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'an invoice in {invoiceCurrency} cannot be paid in {paymentCurrency}',
    remedy: 'invoice in the payment currency itself, or in a fiat currency',
  },
  INVALID_CURSOR: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the cursor cannot be used: {detail}',
    remedy: 'begin again without a cursor',
  },
  CURSOR_MISMATCH: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field} differs from what the cursor carries',
    remedy: 'leave {field} out, or begin again without a cursor',
  },
  CURSOR_EXPIRED: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the watchCursor is older than the changes that are kept, which is 7 days',
    remedy: 'search anew, and watch from the watchCursor of its answer',
  },
  CURSOR_AHEAD: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the watchCursor is ahead of all changes; the database was set back',
    remedy: 'search anew, and watch from the watchCursor of its answer',
  },
  // Lines of an import
  MALFORMED_LINE: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the line cannot be read: {detail}',
    remedy: 'write one JSON object a line, as an export does',
  },
  UNKNOWN_LINE_FIELD: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'unknown field "{field}"',
    remedy: '{suggestion}',
  },
  EVENT_TAKEN: {
    kind: 'CONFLICT',
    in: error,
    message: 'event {eventIndex} of transaction {txHash} on {network} belongs to payment {value}',
    remedy: 'an event is one payment: keep one of the two, or correct txHash and eventIndex',
  },
  // Access
  MISSING_API_KEY: {
    kind: 'UNAUTHENTICATED',
    in: error,
    message: 'this call needs an API key',
    remedy: 'send the key in the header x-api-key',
  },
  INVALID_API_KEY: {
    kind: 'UNAUTHENTICATED',
    in: error,
    message: 'the API key is not known here, or is revoked or expired',
    remedy: 'send a valid key in the header x-api-key',
  },
  INVALID_TICKET: {
    kind: 'UNAUTHENTICATED',
    in: error,
    message: 'the ticket is not known here, was used, or is older than 60 seconds',
    remedy: 'ask for another with CreateWatchTicket: one is good for one call, also when that failed',
  },
  MISSING_SCOPE: {
    kind: 'FORBIDDEN',
    in: error,
    message: 'the API key lacks the scope {scope}',
    remedy: 'use a key that has the scope',
  },
  MISSING_ACCOUNT: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'a platform key must name an account',
    remedy: 'send the account in the header x-account',
  },
  UNKNOWN_ACCOUNT: {
    kind: 'NOT_FOUND',
    in: error,
    message: 'there is no account "{value}"',
    remedy: 'name an account that has a key',
  },
  ACCOUNT_NOT_ALLOWED: {
    kind: 'FORBIDDEN',
    in: error,
    message: 'this key belongs to one account and cannot name another',
    remedy: 'leave the header x-account out, or use a platform key',
  },
  HOST_NOT_ALLOWED: {
    kind: 'FORBIDDEN',
    in: error,
    message: 'the host "{value}" is not served by the demo',
    remedy: 'call the demo as localhost or 127.0.0.1',
  },
  RATE_LIMITED: {
    kind: 'LIMITED',
    in: error,
    message: 'more than {limit} calls a minute',
    remedy: 'wait {retryAfterSeconds} seconds',
  },
  OVERLOADED: {
    kind: 'UNAVAILABLE',
    in: error,
    message: 'too many calls are under way',
    remedy: 'try again in a moment',
  },
  TOO_MANY_WATCHERS: {
    kind: 'LIMITED',
    in: error,
    message: 'the account has {limit} watches open, which is the most',
    remedy: 'end one first, or watch once with a filter that takes in several',
  },
  READER_TOO_SLOW: {
    kind: 'LIMITED',
    in: error,
    message: 'nothing of the stream was taken for {limitMs} ms',
    remedy: 'read faster or ask for less, and go on behind the last that came',
  },
  TOO_MANY_CONNECTIONS: {
    kind: 'UNAVAILABLE',
    in: error,
    message: 'too many connections are open {detail}',
    remedy: 'use one connection for many calls, or try again in a moment',
  },
  // Resources
  ROUTE_NOT_FOUND: {
    kind: 'NOT_FOUND',
    in: error,
    message: 'there is nothing at {path}',
    remedy: '{suggestion}',
  },
  METHOD_NOT_ALLOWED: {
    kind: 'UNSUPPORTED',
    in: error,
    message: '{method} is not possible at {path}',
    remedy: 'use {allow}',
  },
  WRONG_REQUEST_COUNT: {
    kind: 'UNSUPPORTED',
    in: error,
    message: 'the call holds {count}',
    remedy: 'send exactly one message: the method takes no stream',
  },
  METHOD_NOT_FOUND: {
    kind: 'UNSUPPORTED',
    in: error,
    message: 'there is no method {path}',
    remedy: 'ask the reflection service for the methods there are',
  },
  UNKNOWN_SERVICE: {
    kind: 'NOT_FOUND',
    in: error,
    message: 'there is no service "{value}" here',
    remedy: 'ask the reflection service for the services there are',
  },
  REQUEST_NOT_FOUND: {
    kind: 'NOT_FOUND',
    in: error,
    message: 'there is no payment request {value}',
    remedy: 'check the reference, or create the request first',
  },
  PAYMENT_NOT_FOUND: {
    kind: 'NOT_FOUND',
    in: error,
    message: 'there is no payment {value}',
    remedy: 'check the id; a payment whose block was taken back by its chain is gone',
  },
  REQUEST_TERMS_DIFFER: {
    kind: 'CONFLICT',
    in: error,
    message: 'the request {value} is stored with other terms: {detail}',
    remedy: 'terms never change: send the stored ones, or another requestId',
  },
  IDEMPOTENCY_KEY_REUSED: {
    kind: 'CONFLICT',
    in: error,
    message: 'the idempotency key was used for other terms',
    remedy: 'send the same terms, or another key',
  },
  UNKNOWN_ROUTE: {
    kind: 'NOT_FOUND',
    in: error,
    message: 'this request has no route {value}',
    remedy: '{suggestion}',
  },
  ROUTE_UNAVAILABLE: {
    kind: 'PRECONDITION',
    in: error,
    message: 'the route {route} cannot be taken now: {detail}',
    remedy: '{remedy}',
  },
  REQUEST_COVERED: {
    kind: 'PRECONDITION',
    in: error,
    message: 'nothing is to be paid: {detail}',
    remedy: 'look at the request anew when its payments change',
  },
  QUOTE_CHANGED: {
    kind: 'CONFLICT',
    in: error,
    message: 'the route {route} now takes {sourceAmount} {token}, more than the {maxSourceAmount} that it may',
    remedy: 'show the new quote to the payer and send a maxSourceAmount that allows it, or leave maxSourceAmount out',
  },
  // Bad days
  DEADLINE_EXCEEDED: {
    kind: 'TIMEOUT',
    in: error,
    message: 'the answer did not come within {timeoutMs} ms',
    remedy: 'allow more time, or narrow the question',
  },
  STREAM_EXPIRED: {
    kind: 'UNAVAILABLE',
    in: error,
    message: 'a stream lasts {limitMs} ms at most',
    remedy: 'call again',
  },
  DATABASE_TIMEOUT: {
    kind: 'TIMEOUT',
    in: error,
    message: 'the database did not answer in time',
    remedy: 'narrow the question, or try again later',
  },
  EXPORT_POSITION_UNKNOWN: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: there is no payment {value}, and none was there within the last 7 days',
    remedy: 'begin the export anew, with fromDate at the last timestamp that was received',
  },
  SUMMARY_TIMEOUT: {
    kind: 'TIMEOUT',
    in: error,
    message: 'the summary was not there within {timeoutMs} ms',
    remedy: 'narrow the filters: each payment that matches is read',
  },
  DATABASE_UNAVAILABLE: {
    kind: 'UNAVAILABLE',
    in: error,
    message: 'the database cannot be reached',
    remedy: 'try again in a moment',
  },
  CALL_CANCELLED: { kind: 'CANCELLED', in: error, message: 'the caller hung up', remedy: '' },
  SHUTTING_DOWN: {
    kind: 'UNAVAILABLE',
    in: error,
    message: 'this process is stopping',
    remedy: 'connect again',
  },
  INTERNAL: {
    kind: 'INTERNAL',
    in: error,
    message: 'something went wrong here',
    remedy: 'try again; if it stays, report the x-request-id of this answer',
  },
  // Warnings on the answer as a whole
  REQUEST_ALREADY_PAID: {
    kind: 'NOTICE',
    in: warning,
    message: 'final payments cover this request',
    remedy: 'nothing is to be paid',
  },
  PAYMENT_PENDING: {
    kind: 'NOTICE',
    in: warning,
    message: 'payments that are not final yet cover this request',
    remedy: 'wait until they are final',
  },
  AMOUNT_ABOVE_OUTSTANDING: {
    kind: 'NOTICE',
    in: warning,
    message: 'the amount {amount} is above the outstanding balance of {outstanding} {currency}',
    remedy: 'pay the outstanding balance',
  },
  // Warnings on a route
  INSUFFICIENT_GAS: {
    kind: 'NOTICE',
    in: warning,
    message: 'the wallet has {have} {currency} for gas and needs about {need}',
    remedy: 'add {missing} {currency} on {chain}',
  },
  GAS_MAY_BE_SPONSORED: {
    kind: 'NOTICE',
    in: warning,
    message: 'the wallet is a contract, so its gas may be paid by others',
    remedy: 'check the gas with whoever runs the wallet',
  },
  GAS_UNPRICED: {
    kind: 'NOTICE',
    in: warning,
    message: 'there is no price of {currency}, so the fee leaves out the gas',
    remedy: 'count the gas by yourself',
  },
  CROSSCHAIN_SURPLUS: {
    kind: 'NOTICE',
    in: warning,
    message: 'about {amount} {token} more than the payment needs is carried along',
    remedy: 'expect it in the wallet on {chain}',
  },
  // Candidates that did not become a route
  INSUFFICIENT_BALANCE: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the wallet has {have} {token} and needs {need}',
    remedy: 'add {missing} {token} on {chain}',
  },
  FEE_ABOVE_MAXIMUM: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'its fee is {fee} of what the payee receives, more than the maxFee of {maxFee}',
    remedy: 'raise maxFee',
  },
  PRICE_IMPACT_ABOVE_MAXIMUM: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      'its price impact is {priceImpact} of what the payee receives, more than the maxPriceImpact of {maxPriceImpact}',
    remedy: 'raise maxPriceImpact',
  },
  NO_CONVERSION_PROVIDER: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      'the wallet has {have} {token} on {chain}, but a request in {invoiceCurrency} can only be paid with {paymentToken} on {destinationChain}',
    remedy: 'get {paymentToken} on {destinationChain} elsewhere and pay with it',
  },
  NO_CONVERSION_PATH: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'no conversion of {invoiceCurrency} into {token} is configured on {chain}',
    remedy: 'configure a path from {invoiceCurrency} to {token} under conversion in the chains file',
  },
  NO_RATE: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the conversion contract of {chain} tells no rate of {invoiceCurrency} in {token}',
    remedy: 'check that its price feeds exist and answer more than 0',
  },
  RATE_STALE: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      'the rate of {invoiceCurrency} in {token} on {chain} is {ageSeconds} seconds old, and the payment would be refused beyond {limitSeconds}',
    remedy: 'try again when its price feed has a new round',
  },
  NO_SWAP_CONTRACT: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'no contract that swaps through {exchange} and pays is configured on {chain}',
    remedy: 'configure ERC20_SWAP_TO_PAY and the fee proxy of {chain} in the chains file',
  },
  COIN_NOT_SWAPPABLE: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{exchange} swaps tokens, and {coin} is the native coin of {chain}',
    remedy: 'swap {token} into {paymentToken} elsewhere and pay with it',
  },
  NO_POOL: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{exchange} has no pool that leads from {token} to {paymentToken} on {chain}',
    remedy: 'swap {token} into {paymentToken} elsewhere and pay with it',
  },
  INSUFFICIENT_LIQUIDITY: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the pools of {exchange} between {token} and {paymentToken} on {chain} hold less than the payment needs',
    remedy: 'pay a part of it by an amount, or swap elsewhere',
  },
  SWAP_NOT_SET_UP: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the contract of {chain} that swaps and pays is not ready for this: {detail}',
    remedy: 'let its owner set the router and approve the tokens',
  },
  NO_SWAP_PROVIDER: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the wallet has {have} {token}, but nothing here swaps it into {paymentToken} on {destinationChain}',
    remedy: 'swap it elsewhere and pay with {paymentToken} on {destinationChain}',
  },
  NO_CROSSCHAIN_PROVIDER: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the wallet has {have} {token} on {chain}, but nothing here carries it to {destinationChain}',
    remedy: 'carry it there elsewhere and pay with {paymentToken} on {destinationChain}',
  },
  CROSSCHAIN_DELIVERS_TOKENS: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} is asked to deliver tokens, and {coin} is the native coin of {destinationChain}',
    remedy: 'pay with {coin} on {destinationChain}',
  },
  CROSSCHAIN_BRIDGED_TOKEN: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{token} on {chain} is a bridged copy, and {provider} is asked for tokens of their issuers alone',
    remedy: 'pay with another token, or ask for one',
  },
  CROSSCHAIN_AMOUNT_TOO_SMALL: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'it is too little to be carried from {chain} to {destinationChain} by {provider}: {detail}',
    remedy: 'pay with {paymentToken} on {destinationChain}, or more at once',
  },
  CROSSCHAIN_BALANCE_TOO_LOW: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'the wallet has {have} {token} and needs about {need} and what it costs to carry them',
    remedy: 'add more than {missing} {token} on {chain}',
  },
  CROSSCHAIN_NOT_ASKED: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      '{provider} is asked for the {most} best-funded tokens of a wallet, and {token} on {chain} is none of them',
    remedy: 'ask with tokens={token} and chains={chain}',
  },
  CROSSCHAIN_NO_ROUTE: {
    kind: 'NOTICE',
    in: unavailable,
    message:
      '{provider} has no way from {token} on {chain} to {paymentToken} on {destinationChain} for this amount: {detail}',
    remedy: 'pay with {paymentToken} on {destinationChain}, or try again later',
  },
  CROSSCHAIN_REFUSED: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} refuses the question: {detail}',
    remedy: 'check that {provider} serves {chain} and {destinationChain} and their configured tokens',
  },
  CROSSCHAIN_QUOTA_EXHAUSTED: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} may not be asked for {seconds} seconds: its quota is used up',
    remedy: 'ask again then, or let the operator get a larger quota',
  },
  CROSSCHAIN_UNAUTHORIZED: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} does not take the API key of this service',
    remedy: 'let the operator check LIFI_API_KEY',
  },
  CROSSCHAIN_TIMEOUT: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} did not answer in time',
    remedy: 'try again in a moment',
  },
  CROSSCHAIN_UNREACHABLE: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} could not be asked: {detail}',
    remedy: 'try again in a moment',
  },
  CROSSCHAIN_INCONSISTENT: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{provider} gave an answer that cannot be right: {detail}',
    remedy: 'take another route, or try again later',
  },
  NO_PAYMENT_CONTRACT: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'no payment contract for {token} is configured on {chain}',
    remedy: 'configure the fee proxy of {chain}',
  },
  CURRENCY_NOT_SUPPORTED: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'payments in {currency} cannot be made through this service',
    remedy: 'configure the token on {chain} in the chains file',
  },
  NO_PRICE: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'there is no price of {token} on {chain}',
    remedy: 'configure a price feed or a peg for {token}',
  },
  CHAIN_NOT_SUPPORTED: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'payments on {chain} cannot be made through this service',
    remedy: 'configure {chain} in the chains file',
  },
  WALLET_FAMILY_MISMATCH: {
    kind: 'NOTICE',
    in: unavailable,
    message: 'a {walletFamily} wallet cannot pay on {chain}',
    remedy: 'ask with a wallet of {chain}',
  },
  CHAIN_UNREACHABLE: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{chain} did not answer: {detail}',
    remedy: 'try again in a moment',
  },
  CHAIN_TIMEOUT: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{chain} did not answer within {timeoutMs} ms',
    remedy: 'try again in a moment',
  },
  CHAIN_INCONSISTENT: {
    kind: 'NOTICE',
    in: unavailable,
    message: '{chain} gave an answer that cannot be right: {detail}',
    remedy: 'check the RPC URL of {chain}',
  },
} as const satisfies Record<string, ReasonEntry>

/** The name of a reason. */
export type Reason = keyof typeof reasons
