import { error, type ReasonEntry } from './reason-entry.ts'

/** Of values that a field does not take, of cursors, and of lines of an import. */
export const valueReasons = {
  // Input: values
  INVALID_ADDRESS: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: "{value}" is not an address: {detail}',
    remedy: 'send 0x and 40 hexadecimal digits, all in one case or with a right EIP-55 checksum, or a Tron address',
  },
  RECEIVER_IS_CONTRACT: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: "{value}" is {what} in the configuration of {network}: what it is sent would be lost',
    remedy: 'send the address of a wallet',
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
  EXPIRY_PAST: {
    kind: 'INVALID_INPUT',
    in: error,
    message: '{field}: {value} is not in the future',
    remedy: 'send a later time, or leave it out for a request that never expires',
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
    message: 'limit "{value}" is not a page size',
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
  INVALID_WATCH_CURSOR: {
    kind: 'INVALID_INPUT',
    in: error,
    message: 'the watchCursor cannot be used: {detail}',
    remedy: 'search anew, and watch from the watchCursor of its answer',
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
} as const satisfies Record<string, ReasonEntry>
