import { error } from './reason-entry.ts'

/** Reasons of valid requests that fail: who calls may not, the resource is missing or in another state, or the service cannot answer in time. */
export const callReasons = {
  // Keys, tickets, scopes and accounts, and limits of callers
  MISSING_API_KEY: error('UNAUTHENTICATED', {
    message: 'this call needs an API key',
    remedy: 'send the key in the header x-api-key',
  }),
  INVALID_API_KEY: error('UNAUTHENTICATED', {
    message: 'the API key is unknown, revoked or expired',
    remedy: 'send a valid key in the header x-api-key',
  }),
  INVALID_TICKET: error('UNAUTHENTICATED', {
    message: 'the ticket is unknown, used already, or older than 60 seconds',
    remedy: 'create another one with CreateWatchTicket: a ticket works for one call, even if that call fails',
  }),
  MISSING_SCOPE: error('FORBIDDEN', {
    message: 'the API key lacks the scope {scope}',
    remedy: 'use a key that has the scope',
  }),
  MISSING_ACCOUNT: error('INVALID_INPUT', {
    message: 'a platform key must name an account',
    remedy: 'send the account in the header x-account',
  }),
  UNKNOWN_ACCOUNT: error('NOT_FOUND', {
    message: 'there is no account "{value}"',
    remedy: 'name an account that has a key',
  }),
  ACCOUNT_NOT_ALLOWED: error('FORBIDDEN', {
    message: 'this key belongs to one account and cannot name another',
    remedy: 'leave out the header x-account, or use a platform key',
  }),
  ORIGIN_NOT_ALLOWED: error('FORBIDDEN', {
    message: 'pages of the origin "{value}" may not call with this key',
    remedy: 'create a key for the origin: waybill keys create --publishable --origins ORIGIN',
  }),
  ORIGIN_UNKNOWN: error('FORBIDDEN', {
    message: 'pages of the origin "{value}" may not call this service',
    remedy:
      'set CORS_ORIGINS to the origin, or create a key for it: waybill keys create --publishable --origins ORIGIN',
  }),
  NOT_OWN_PAGE: error('FORBIDDEN', {
    message: 'only pages that this demo serves may call {path}',
    remedy: 'open the checkout page, whose link the start of the demo prints',
  }),
  NOT_FOR_PUBLISHABLE_KEYS: error('FORBIDDEN', {
    message: 'a publishable key may read one request and its routes, and nothing else',
    remedy: 'call from a server, with a secret key',
  }),
  HOST_NOT_ALLOWED: error('FORBIDDEN', {
    message: 'the host "{value}" is not served by the demo',
    remedy: 'call the demo as localhost or 127.0.0.1',
  }),
  RATE_LIMITED: error('LIMITED', {
    message: 'the limit of {limit} calls a minute is reached',
    remedy: 'wait {retryAfterSeconds} seconds',
  }),
  OVERLOADED: error('UNAVAILABLE', {
    message: 'this process has too many calls at once',
    remedy: 'try again in a moment',
  }),
  TOO_MANY_OPEN_BODIES: error('LIMITED', {
    message: 'the {holder} has {limit} requests under way whose bodies have not arrived, which is the maximum',
    remedy: 'send bodies whole, and this one again in a moment',
  }),
  TOO_MANY_AT_ONCE: error('LIMITED', {
    message: 'the call waited too long for its slot: {limit} calls of this kind run at once for one key',
    remedy: 'send fewer calls at a time, and this one again in {retryAfterSeconds} s',
  }),
  TOO_MANY_STREAMS: error('LIMITED', {
    message: 'the {holder} has {limit} streams open, which is the maximum',
    remedy: 'close one, or ask in one stream for what several would send',
  }),
  TOO_MANY_PAGE_STREAMS: error('LIMITED', {
    message: 'too many streams of pages are open',
    remedy: 'ask again every few seconds with the method that is no stream',
  }),
  READER_TOO_SLOW: error('LIMITED', {
    message:
      'the stream was read too slowly: while messages wait, {perSecond} {unit} a second must be read, with pauses of {limitMs} ms in all',
    remedy: 'read faster or ask for less, and continue after the last message received',
  }),
  TOO_MANY_CONNECTIONS: error('UNAVAILABLE', {
    message: 'too many connections are open all together',
    remedy: 'use one connection for many calls, or try again in a moment',
  }),
  // Resources
  ROUTE_NOT_FOUND: error('NOT_FOUND', {
    message: 'there is nothing at {path}',
    remedy: '{suggestion}',
  }),
  METHOD_NOT_ALLOWED: error('UNSUPPORTED', {
    message: '{method} is not allowed at {path}',
    remedy: 'use {allow}',
  }),
  WRONG_REQUEST_COUNT: error('UNSUPPORTED', {
    message: 'the call holds {count}',
    remedy: 'send exactly one message: the method takes no stream',
  }),
  METHOD_NOT_FOUND: error('UNSUPPORTED', {
    message: 'there is no method {path}',
    remedy: 'list the methods with server reflection',
  }),
  UNKNOWN_SERVICE: error('NOT_FOUND', {
    message: 'there is no service "{value}" here',
    remedy: 'list the services with server reflection',
  }),
  REQUEST_NOT_FOUND: error('NOT_FOUND', {
    message: 'there is no payment request {value}',
    remedy: 'check the reference, or create the request first',
  }),
  PAYMENT_NOT_FOUND: error('NOT_FOUND', {
    message: 'there is no payment {value}',
    remedy: 'check the id; a payment whose block was removed by a reorg is gone',
  }),
  WALLET_NOT_FOUND: error('NOT_FOUND', {
    message: 'the account has no refund wallet {value}',
    remedy: 'list the wallets to see which are registered',
  }),
  TOO_MANY_WALLETS: error('PRECONDITION', {
    message: 'no further refund wallet can be registered: {detail}',
    remedy: 'remove wallets that are no longer used, and keep the others: each registration counts',
  }),
  WEBHOOK_NOT_FOUND: error('NOT_FOUND', {
    message: 'the account has no webhook {value}',
    remedy: 'list the webhooks to see their ids',
  }),
  TOO_MANY_WEBHOOKS: error('PRECONDITION', {
    message: 'the account has {limit} webhooks, which is the maximum',
    remedy: 'delete one that is no longer used',
  }),
  KEY_NOT_FOUND: error('NOT_FOUND', {
    message: 'the account has no key {value}',
    remedy: 'list the keys to see their ids',
  }),
  KEY_NOT_IN_FORCE: error('PRECONDITION', {
    message: 'the key {value} cannot be rotated: {detail}',
    remedy: 'rotate a key in force that nothing has replaced, or create one',
  }),
  KEY_EXCEEDS_OWN: error('FORBIDDEN', {
    message: 'a key may not hand out or end more than it holds: {detail}',
    remedy: 'use a key that holds it, or the command waybill keys',
  }),
  KEY_SHOWN_ONCE: error('INVALID_INPUT', {
    message: 'this call takes no idempotency-key, because a key is shown once and its answer is never repeated',
    remedy: 'leave the header out; where an answer was lost, list the keys and revoke the one it made',
  }),
  TOO_MANY_KEYS: error('PRECONDITION', {
    message: 'the account has {limit} keys in force, which is the maximum',
    remedy: 'revoke one that is no longer used',
  }),
  REPLAY_TOO_OLD: error('PRECONDITION', {
    message: 'the log of changes does not go back that far: changes are kept for 7 days',
    remedy: 'replay what is kept, and search for earlier changes with changedFrom',
  }),
  REQUEST_TERMS_DIFFER: error('CONFLICT', {
    message: 'the request {value} is stored with other terms: {detail}',
    remedy: 'terms never change: send the stored ones, or another requestId',
  }),
  IDEMPOTENCY_KEY_REUSED: error('CONFLICT', {
    message: 'the idempotency key was used for other terms',
    remedy: 'send the same terms, or another key',
  }),
  UNKNOWN_ROUTE: error('NOT_FOUND', {
    message: 'this request has no route {value}',
    remedy: '{suggestion}',
  }),
  ROUTE_UNAVAILABLE: error('PRECONDITION', {
    message: 'the route {route} cannot be taken now: {why}',
    remedy: '{remedy}',
  }),
  ROUTE_WOULD_FAIL: error('PRECONDITION', {
    message: 'the route {route} would fail now: its {step} to {contract} on {chain} reverts with "{detail}"',
    remedy: 'send none of its transactions; take another route, or fix what the contract says and ask again',
  }),
  REQUEST_COVERED: error('PRECONDITION', {
    message: 'nothing is left to pay: {detail}',
    remedy: 'read the request again when its payments change',
  }),
  REQUESTS_NOT_PAYABLE: error('PRECONDITION', {
    message: '{count} of {total} requests cannot be paid together, by their indexes: {why}',
    remedy: 'leave them out and pay the others, or pay them alone where that is possible',
  }),
  BATCH_CONVERSION: error('PRECONDITION', {
    message: 'the request is in {invoiceCurrency}, whose rate is known only when it is paid',
    remedy: 'pay it alone',
  }),
  BATCH_CURRENCY_DIFFERS: error('PRECONDITION', {
    message: 'the request is paid in {currency}, the others in {expected}',
    remedy: 'pay it in another batch',
  }),
  QUOTE_CHANGED: error('CONFLICT', {
    message: 'the route {route} now takes {sourceAmount} {token}, more than the maxSourceAmount of {maxSourceAmount}',
    remedy: 'show the new quote to the payer and send a maxSourceAmount that allows it, or leave out maxSourceAmount',
  }),
  // Failures of the service
  ROUTE_NOT_QUOTED: error('UNAVAILABLE', {
    message: 'the route {route} could not be quoted: {why}',
    remedy: '{remedy}',
  }),
  DEADLINE_EXCEEDED: error('TIMEOUT', {
    message: 'the call took longer than {timeoutMs} ms',
    remedy: 'allow more time, or ask for less',
  }),
  STREAM_EXPIRED: error('UNAVAILABLE', {
    message: 'a stream lasts {limitMs} ms at most',
    remedy: 'call again',
  }),
  DATABASE_TIMEOUT: error('TIMEOUT', {
    message: 'the database did not answer in time',
    remedy: 'ask for less, or try again later',
  }),
  EXPORT_POSITION_UNKNOWN: error('INVALID_INPUT', {
    message: '{field}: there is no payment {value}, and there was none within the last 7 days',
    remedy: 'begin the export again, with fromDate at the last timestamp received',
  }),
  SUMMARY_TIMEOUT: error('TIMEOUT', {
    message: 'the summary took longer than {timeoutMs} ms',
    remedy: 'narrow the filters: everything that matches is read',
  }),
  DATABASE_UNAVAILABLE: error('UNAVAILABLE', {
    message: 'the database cannot be reached',
    remedy: 'try again in a moment',
  }),
  CALL_CANCELLED: error('CANCELLED', { message: 'the caller cancelled the call', remedy: '' }),
  SHUTTING_DOWN: error('UNAVAILABLE', {
    message: 'this process is stopping',
    remedy: 'connect again',
  }),
  INTERNAL: error('INTERNAL', {
    message: 'an internal error occurred',
    remedy: 'try again; if it happens again, report the x-request-id of this answer',
  }),
}
