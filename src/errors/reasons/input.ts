import { error } from './reason-entry.ts'

/** Reasons of malformed requests, of invalid values and cursors, and of lines of an import. */
export const inputReasons = {
  // Fields, addresses, bodies, headers
  MISSING_FIELD: error('INVALID_INPUT', {
    message: '{field} is missing',
    remedy: 'send a value for {field}',
  }),
  VALUE_TOO_LONG: error('INVALID_INPUT', {
    message: '{field} is too long: {detail}',
    remedy: 'send a shorter value',
  }),
  TOO_MANY_VALUES: error('INVALID_INPUT', {
    message: '{field} has too many values: {detail}',
    remedy: 'send fewer values, or make several calls',
  }),
  INVALID_FIELD: error('INVALID_INPUT', {
    message: '{field} is not valid: {detail}',
    remedy: 'correct the value',
  }),
  UNKNOWN_PARAMETER: error('INVALID_INPUT', {
    message: 'unknown query parameter "{field}"',
    remedy: '{suggestion}',
  }),
  DUPLICATE_PARAMETER: error('INVALID_INPUT', {
    message: '"{field}" is given more than once: {detail}',
    remedy: 'send it once',
  }),
  ONEOF_CONFLICT: error('INVALID_INPUT', {
    message: '{field} cannot be sent beside another field: {detail}',
    remedy: 'send one of them',
  }),
  UNKNOWN_FIELD: error('INVALID_INPUT', {
    message: 'the message has an unknown field: {detail}',
    remedy: 'remove it, or generate the client again from the current definitions',
  }),
  UNKNOWN_ENUM_VALUE: error('INVALID_INPUT', {
    message: '{field} has no value "{value}"',
    remedy: '{suggestion}',
  }),
  MALFORMED_URL: error('INVALID_INPUT', {
    message: 'the URL is malformed: {detail}',
    remedy: 'encode it as in RFC 3986',
  }),
  INVALID_UTF8: error('INVALID_INPUT', {
    message: '{field} is not valid UTF-8',
    remedy: 'encode text as UTF-8',
  }),
  MALFORMED_BODY: error('INVALID_INPUT', {
    message: 'the body cannot be read: {detail}',
    remedy: 'send one message in the format that Content-Type names',
  }),
  UNEXPECTED_BODY: error('INVALID_INPUT', {
    message: 'this path takes no body',
    remedy: 'send the fields as query parameters',
  }),
  BODY_TOO_LARGE: error('LIMITED', {
    message: 'the body is larger than {limit} bytes',
    remedy: 'send a smaller body',
  }),
  BODY_TOO_COMPLEX: error('INVALID_INPUT', {
    message: 'the request has more than {limit}',
    remedy: 'nest less, send fewer values, or make several calls',
  }),
  INVALID_HOST: error('INVALID_INPUT', {
    message: 'the host of the request is not clear: {detail}',
    remedy: 'send one Host header with the host of the URL',
  }),
  HEADERS_TOO_LARGE: error('INVALID_INPUT', {
    message: 'the request has more than {limit}',
    remedy: 'send fewer or shorter headers or query parameters',
  }),
  MALFORMED_REQUEST: error('INVALID_INPUT', {
    message: 'this is not an HTTP request that can be served here: {detail}',
    remedy: 'speak HTTP/1.1, or HTTP/2 with prior knowledge',
  }),
  REQUEST_TOO_SLOW: error('TIMEOUT', {
    message: 'the request did not arrive within {timeoutMs} ms',
    remedy: 'send it faster, or a smaller one',
  }),
  UNSUPPORTED_CONTENT_TYPE: error('INVALID_INPUT', {
    message: 'content type "{value}" is not supported',
    remedy: 'send {expected}',
  }),
  UNSTATED_COMPRESSION: error('INVALID_INPUT', {
    message: 'the message is compressed, but the call does not name the compression',
    remedy: 'name it in the header grpc-encoding (gRPC, gRPC-Web) or connect-content-encoding (Connect)',
  }),
  UNSUPPORTED_CONTENT_ENCODING: error('INVALID_INPUT', {
    message: 'content encoding "{value}" is not supported',
    remedy: 'send {expected}',
  }),
  NOT_ACCEPTABLE: error('INVALID_INPUT', {
    message: 'none of the formats in Accept "{value}" is available',
    remedy: 'accept {expected}',
  }),
  // Values and cursors
  INVALID_ADDRESS: error('INVALID_INPUT', {
    message: '{field}: "{value}" is not a valid address: {detail}',
    remedy: 'send 0x and 40 hexadecimal digits, all in one case or with a correct EIP-55 checksum, or a Tron address',
  }),
  RECEIVER_IS_CONTRACT: error('INVALID_INPUT', {
    message: '{field}: "{value}" is {what} in the configuration of {network}: money sent there would be lost',
    remedy: 'send the address of a wallet',
  }),
  REFUND_ADDRESS_IS_PAYEE: error('INVALID_INPUT', {
    message: '{field}: "{value}" is the payee: refunds could not be distinguished from payments',
    remedy: 'send the address of the payer, or leave it out',
  }),
  INVALID_REFUND_WALLET: error('INVALID_INPUT', {
    message: '{field}: "{value}" cannot be a refund wallet: {detail}',
    remedy: 'send the address of your own wallet on an EVM chain',
  }),
  INVALID_AMOUNT: error('INVALID_INPUT', {
    message: '{field}: "{value}" is not a valid amount: {detail}',
    remedy: 'send a plain decimal number such as 100 or 0.05',
  }),
  INVALID_PERCENTAGE: error('INVALID_INPUT', {
    message: '{field}: "{value}" is not a valid percentage: {detail}',
    remedy: 'send a plain decimal number such as 0.5',
  }),
  INVALID_FRACTION: error('INVALID_INPUT', {
    message: '{field}: "{value}" is not a fraction',
    remedy: 'send a plain decimal number, not negative, such as 0.01 for one percent',
  }),
  INCOMPLETE_FEE: error('INVALID_INPUT', {
    message: '{field} is given without {other}',
    remedy: 'send both or neither',
  }),
  INCOMPLETE_ROUTE: error('INVALID_INPUT', {
    message: '{field} is given {detail}',
    remedy: 'send chain and token together, or route, or none of them for the direct route',
  }),
  INVALID_PAYMENT_REFERENCE: error('INVALID_INPUT', {
    message: '{field}: "{value}" is not a payment reference',
    remedy: 'send 16 hexadecimal digits, 0x before them optional',
  }),
  INVALID_REQUEST_ID: error('INVALID_INPUT', {
    message: '{field}: "{value}" is not a request id',
    remedy: 'send 01 and 64 hexadecimal digits',
  }),
  INVALID_SALT: error('INVALID_INPUT', {
    message: '{field}: "{value}" is not a salt',
    remedy: 'send 16 hexadecimal digits, or leave it out',
  }),
  INVALID_TX_HASH: error('INVALID_INPUT', {
    message: '{field}: "{value}" is not a transaction hash',
    remedy: 'send 64 hexadecimal digits, 0x before them optional',
  }),
  INVALID_PAYMENT_ID: error('INVALID_INPUT', {
    message: '{field}: "{value}" is not a payment id',
    remedy: 'send a UUID',
  }),
  INVALID_DATE: error('INVALID_INPUT', {
    message: '{field}: "{value}" is not a valid date: {detail}',
    remedy: 'send RFC 3339 with an offset, such as 2026-03-01T12:00:00Z, or a day such as 2026-03-01',
  }),
  EXPIRY_PAST: error('INVALID_INPUT', {
    message: '{field}: {value} is not in the future',
    remedy: 'send a later time, or leave it out for what never expires',
  }),
  INVALID_RANGE: error('INVALID_INPUT', {
    message: '{field} "{value}" lies beyond {other} "{otherValue}"',
    remedy: 'swap the two',
  }),
  INVALID_LIMIT: error('INVALID_INPUT', {
    message: 'limit "{value}" is not a valid page size',
    remedy: 'send a whole number from 0 to 2147483647; above 100 it counts as 100',
  }),
  INVALID_REFERENCE: error('INVALID_INPUT', {
    message: '{field} is not a valid reference: {detail}',
    remedy: 'send at most 256 characters, none of them a control character',
  }),
  INVALID_TITLE: error('INVALID_INPUT', {
    message: '{field} is not a valid title: {detail}',
    remedy: 'send at most 80 characters of plain text',
  }),
  INVALID_METADATA: error('INVALID_INPUT', {
    message: '{field} is not valid metadata: {detail}',
    remedy:
      'send keys of 1 to 40 letters, digits, "_", "." and "-", and values of 1 to 500 characters, none of them a control character',
  }),
  INVALID_RETURN_URL: error('INVALID_INPUT', {
    message: '{field} "{value}" is no page that payers can be sent back to: {detail}',
    remedy: 'send an https address whose origin is among those of a publishable key of the account',
  }),
  INVALID_IDEMPOTENCY_KEY: error('INVALID_INPUT', {
    message: 'the header idempotency-key is not valid: {detail}',
    remedy: 'send 1 to 255 visible ASCII characters',
  }),
  UNKNOWN_NETWORK: error('INVALID_INPUT', {
    message: '{field}: unknown network "{value}"',
    remedy: '{suggestion}',
  }),
  UNKNOWN_CURRENCY: error('INVALID_INPUT', {
    message: '{field}: unknown currency "{value}"',
    remedy: '{suggestion}',
  }),
  UNKNOWN_TIME_ZONE: error('INVALID_INPUT', {
    message: '{field}: unknown time zone "{value}"',
    remedy: '{suggestion}',
  }),
  TOO_MANY_GROUPS: error('INVALID_INPUT', {
    message: 'the summary would have more than {limit} groups',
    remedy: 'narrow the filters, or use a coarser grouping',
  }),
  NETWORK_NOT_CONFIGURED: error('INVALID_INPUT', {
    message: '{field}: the network {value} is not served here',
    remedy: 'use one of: {known}',
  }),
  CURRENCY_NOT_ON_NETWORK: error('INVALID_INPUT', {
    message: '{field}: {value} is not a token of {network} that is served here',
    remedy: 'use one of: {known}',
  }),
  CURRENCY_MISMATCH: error('INVALID_INPUT', {
    message: 'an invoice in {invoiceCurrency} cannot be paid in {paymentCurrency}',
    remedy: 'invoice in the payment currency itself, or in a fiat currency',
  }),
  INVALID_CURSOR: error('INVALID_INPUT', {
    message: 'the cursor cannot be used: {detail}',
    remedy: 'begin again without a cursor',
  }),
  INVALID_WATCH_CURSOR: error('INVALID_INPUT', {
    message: 'the watchCursor cannot be used: {detail}',
    remedy: 'search again, and watch from the watchCursor of the answer',
  }),
  CURSOR_MISMATCH: error('INVALID_INPUT', {
    message: '{field} differs from what the cursor carries',
    remedy: 'leave {field} out, or begin again without a cursor',
  }),
  CURSOR_EXPIRED: error('INVALID_INPUT', {
    message: 'the log of changes does not hold this watchCursor: {detail}',
    remedy: 'search again, and watch from the watchCursor of the answer',
  }),
  INVALID_WEBHOOK_URL: error('INVALID_INPUT', {
    message: '{field} is not where webhooks can be sent: {detail}',
    remedy: 'send an https:// URL of a public host, such as https://shop.example/webhooks',
  }),
  // Lines of an import
  MALFORMED_LINE: error('INVALID_INPUT', {
    message: 'the line cannot be read: {detail}',
    remedy: 'write one JSON object a line, as an export does',
  }),
  UNKNOWN_LINE_FIELD: error('INVALID_INPUT', {
    message: 'unknown field "{field}"',
    remedy: '{suggestion}',
  }),
  EVENT_TAKEN: error('CONFLICT', {
    message: 'event {eventIndex} of transaction {txHash} on {network} belongs to payment {value}',
    remedy: 'an event belongs to one payment: keep one of the two lines, or correct txHash and eventIndex',
  }),
}
