import { error } from './reason-entry.ts'

/** Reasons of malformed requests: fields, addresses, bodies, headers. */
export const requestFormReasons = {
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
}
