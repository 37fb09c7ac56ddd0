import { error } from './reason-entry.ts'

/** Reasons of keys, tickets, scopes and accounts, and of limits of callers. */
export const accessReasons = {
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
}
