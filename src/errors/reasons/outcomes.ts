import { error } from './reason-entry.ts'

/** Reasons of valid requests that fail: the resource is missing or in another state, or the service cannot answer in time. */
export const outcomeReasons = {
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
