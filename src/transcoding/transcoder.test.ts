import { join } from 'node:path'
import {
  create,
  createRegistry,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromJson,
  type JsonValue,
  type Message,
  toJson,
  toJsonString,
} from '@bufbuild/protobuf'
import { StringValueSchema } from '@bufbuild/protobuf/wkt'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileProtos } from '../../test/support/compile-protos.ts'
import { compileBodyMapping } from './body-mapping.ts'
import type { HttpRule } from './http-rule.ts'
import { DuplicateRouteError } from './router.ts'
import { arbitraryMessage, hasEscapedKey } from './testdata/arbitrary-message.ts'
import { compileRoutes, InvalidHttpRuleError, type Route, type TranscoderOptions } from './transcoder.ts'
import type { TranscodingErrorKind } from './transcoding-error.ts'

const files = compileProtos(join(import.meta.dirname, 'testdata'))
const library = serviceDesc('library.v1.LibraryService')

function serviceDesc(typeName: string): DescService {
  const desc = files.getService(typeName)
  if (desc === undefined) throw new Error(`no service ${typeName}`)
  return desc
}

function messageDesc(typeName: string): DescMessage {
  const desc = files.getMessage(typeName)
  if (desc === undefined) throw new Error(`no message ${typeName}`)
  return desc
}

function rule(verb: 'get' | 'put' | 'post' | 'delete' | 'patch', path: string, more: Partial<HttpRule> = {}): HttpRule {
  return { pattern: { case: verb, value: path }, body: '', responseBody: '', additionalBindings: [], ...more }
}

const rules: Record<string, HttpRule> = {
  GetBook: rule('get', '/v1/{name=shelves/*/books/*}', {
    additionalBindings: [
      rule('get', '/v1/genres/{genre}/books/{pages}'),
      rule('get', '/v1/read/{read_at}/{author.name}'),
      { ...rule('get', ''), pattern: { case: 'custom', value: { kind: 'FETCH', path: '/v1/fetch' } } },
    ],
  }),
  ListBooks: rule('get', '/v1/{parent=shelves/*}/books', {
    additionalBindings: [
      rule('get', '/v1/books', { responseBody: 'books' }),
      rule('get', '/v1/first', { responseBody: 'first' }),
      rule('get', '/v1/next', { responseBody: 'next' }),
      rule('get', '/v1/as-of', { responseBody: 'as_of' }),
      rule('get', '/v1/total', { responseBody: 'total' }),
    ],
  }),
  CreateBook: rule('post', '/v1/{parent=shelves/*}/books', { body: 'book' }),
  UpdateBook: rule('patch', '/v1/{book.name=shelves/*/books/*}', { body: 'book' }),
  AddTags: rule('post', '/v1/{name=shelves/*/books/*}:addTags', {
    body: '*',
    additionalBindings: [rule('put', '/v1/{name=shelves/*/books/*}/tags', { body: 'tags' })],
  }),
}

function compile(given: Record<string, HttpRule> = rules, options: Partial<TranscoderOptions> = {}) {
  return compileRoutes([library], { httpRule: (method: DescMethod) => given[method.name], ...options })
}

const transcoder = compile(rules, {
  isCommaSeparated: (field) => field.name === 'genre' || field.name === 'author_name',
})

function routeFor(target: string): { route: Route; decode: (body?: string | Uint8Array) => Message } {
  const [httpMethod = '', url = ''] = target.split(' ')
  const [path = '', rawQuery = ''] = url.split('?')
  const match = transcoder.match(httpMethod, path)
  if (match.kind !== 'match') throw new Error(`${target}: ${match.kind}`)
  const { route, variables } = match
  return {
    route,
    decode: (body) => {
      const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
      return route.decodeRequest({ variables, rawQuery, body: bytes })
    },
  }
}

function decodeToJson(target: string, body?: string | Uint8Array): JsonValue {
  const { route, decode } = routeFor(target)
  return toJson(route.method.input, decode(body))
}

describe('requests', () => {
  test.each<[string, string | undefined, JsonValue]>([
    ['GET /v1/shelves/a%2Fb/books/c%20d', undefined, { name: 'shelves/a%2Fb/books/c d' }],
    ['GET /v1/genres/poetry/books/12', undefined, { genre: 'POETRY', pages: 12 }],
    ['GET /v1/genres/2/books/007?name=x', undefined, { name: 'x', genre: 'POETRY', pages: 7 }],
    [
      'GET /v1/read/2021-01-01T00:00:00Z/Kafka',
      undefined,
      { readAt: '2021-01-01T00:00:00Z', author: { name: 'Kafka' } },
    ],
    [
      'GET /v1/read/2021-01-01T00:00:00Z/K?author.birthPlace=Prag',
      undefined,
      { readAt: '2021-01-01T00:00:00Z', author: { name: 'K', birthPlace: 'Prag' } },
    ],
    ['FETCH /v1/fetch?name=x', undefined, { name: 'x' }],
    ['HEAD /v1/books?limit=3', undefined, { limit: 3 }],
    ['GET /v1/books?feePercentage=1', undefined, { feePercentage: '1' }],
    ['GET /v1/books?fee_percentage=1', undefined, { feePercentage: '1' }],
    ['GET /v1/books?genre=novel&genre=POETRY', undefined, { genre: ['NOVEL', 'POETRY'] }],
    ['GET /v1/books?genre=novel,Poetry&genre=1', undefined, { genre: ['NOVEL', 'POETRY', 'NOVEL'] }],
    ['GET /v1/books?authorName=a%2Cb&author_name=c', undefined, { authorName: ['a', 'b', 'c'] }],
    ['GET /v1/books?feePercentage=a,b', undefined, { feePercentage: 'a,b' }],
    ['GET /v1/books?feePercentage=a+b%2Bc', undefined, { feePercentage: 'a b+c' }],
    ['GET /v1/books?feePercentage="1"', undefined, { feePercentage: '"1"' }],
    ['GET /v1/books?feePercentage=a=b', undefined, { feePercentage: 'a=b' }],
    ['GET /v1/books?fee%50ercentage=1', undefined, { feePercentage: '1' }],
    ['GET /v1/books?&&limit=3&', undefined, { limit: 3 }],
    ['GET /v1/books?note', undefined, { note: '' }],
    ['GET /v1/books?author.birth_place=x&author.name=y', undefined, { author: { birthPlace: 'x', name: 'y' } }],
    [`GET /v1/books?feePercentage=${Buffer.from('ü').toString('latin1')}`, undefined, { feePercentage: 'ü' }],
    [
      'POST /v1/shelves/1/books?requestId=r',
      '{"title":"T","genre":"NOVEL"}',
      { parent: 'shelves/1', requestId: 'r', book: { title: 'T', genre: 'NOVEL' } },
    ],
    ['POST /v1/shelves/1/books', '', { parent: 'shelves/1' }],
    ['POST /v1/shelves/1/books', 'null', { parent: 'shelves/1' }],
    ['POST /v1/shelves/1/books', '{}', { parent: 'shelves/1', book: {} }],
    [
      'PATCH /v1/shelves/1/books/2?updateMask=title,feePercentage',
      '{"title":"T"}',
      { book: { name: 'shelves/1/books/2', title: 'T' }, updateMask: 'title,feePercentage' },
    ],
    [
      'PATCH /v1/shelves/1/books/2?updateMask=fee_percentage',
      '',
      { book: { name: 'shelves/1/books/2' }, updateMask: 'feePercentage' },
    ],
    ['PATCH /v1/shelves/1/books/2', '{"name":"shelves/1/books/2"}', { book: { name: 'shelves/1/books/2' } }],
    ['PATCH /v1/shelves/1/books/2', '{"name":""}', { book: { name: 'shelves/1/books/2' } }],
    [
      'POST /v1/shelves/1/books/2:addTags',
      '{"tags":["a"],"notify":true}',
      { name: 'shelves/1/books/2', tags: ['a'], notify: true },
    ],
    [
      'PUT /v1/shelves/1/books/2/tags?notify=true',
      '["a","b"]',
      { name: 'shelves/1/books/2', tags: ['a', 'b'], notify: true },
    ],
  ])('%s %s', (target, body, expected) => {
    expect(decodeToJson(target, body)).toEqual(expected)
  })

  test('an empty parameter of an optional string is present', () => {
    expect(decodeToJson('GET /v1/books?note=')).toEqual({ note: '' })
    expect(decodeToJson('GET /v1/books')).toEqual({})
  })

  test('one route decodes each request on its own', () => {
    expect(decodeToJson('GET /v1/books?genre=novel&author.name=a')).toEqual({ genre: ['NOVEL'], author: { name: 'a' } })
    expect(decodeToJson('GET /v1/books?genre=poetry')).toEqual({ genre: ['POETRY'] })
  })
})

describe('bad queries and paths', () => {
  test.each<[string, TranscodingErrorKind, string | undefined, string | undefined]>([
    ['GET /v1/books?feePercentagee=1', 'UNKNOWN_PARAMETER', 'feePercentagee', 'feePercentage'],
    ['GET /v1/books?FEEPERCENTAGE=1', 'UNKNOWN_PARAMETER', 'FEEPERCENTAGE', 'feePercentage'],
    ['GET /v1/books?fee_percentag=1', 'UNKNOWN_PARAMETER', 'fee_percentag', 'fee_percentage'],
    ['GET /v1/books?limti=1', 'UNKNOWN_PARAMETER', 'limti', 'limit'],
    ['GET /v1/books?whatever=1', 'UNKNOWN_PARAMETER', 'whatever', undefined],
    ['GET /v1/books?__proto__=1', 'UNKNOWN_PARAMETER', '__proto__', undefined],
    ['GET /v1/books?constructor=1', 'UNKNOWN_PARAMETER', 'constructor', undefined],
    ['GET /v1/books?toString=1', 'UNKNOWN_PARAMETER', 'toString', undefined],
    ['GET /v1/books?__proto__.x=1', 'UNKNOWN_PARAMETER', '__proto__.x', undefined],
    ['GET /v1/books?=1', 'UNKNOWN_PARAMETER', '', undefined],
    ['GET /v1/books?author.nam=1', 'UNKNOWN_PARAMETER', 'author.nam', 'author.name'],
    ['GET /v1/books?autor.name=1', 'UNKNOWN_PARAMETER', 'autor.name', 'author.name'],
    ['GET /v1/books?author..name=1', 'UNKNOWN_PARAMETER', 'author..name', undefined],
    ['GET /v1/books?.limit=1', 'UNKNOWN_PARAMETER', '.limit', undefined],
    ['GET /v1/books?limit.x=1', 'UNKNOWN_PARAMETER', 'limit.x', 'limit'],
    ['GET /v1/shelves/1/books/2?readAt.seconds=1', 'UNKNOWN_PARAMETER', 'readAt.seconds', 'readAt'],
    ['GET /v1/books?limit=1&limit=1', 'DUPLICATE_PARAMETER', 'limit', undefined],
    ['GET /v1/books?feePercentage=1&fee_percentage=1', 'DUPLICATE_PARAMETER', 'fee_percentage', undefined],
    ['GET /v1/books?author.name=1&author.name=2', 'DUPLICATE_PARAMETER', 'author.name', undefined],
    ['GET /v1/books?author=x', 'NOT_MAPPABLE', 'author', 'author.name'],
    ['GET /v1/books?editors=x', 'NOT_MAPPABLE', 'editors', undefined],
    ['GET /v1/books?editors.name=x', 'NOT_MAPPABLE', 'editors.name', undefined],
    ['GET /v1/books?labels=x', 'NOT_MAPPABLE', 'labels', undefined],
    ['GET /v1/books?labels.x=y', 'NOT_MAPPABLE', 'labels.x', undefined],
    ['GET /v1/books?labels%5Bx%5D=y', 'NOT_MAPPABLE', 'labels[x]', undefined],
    ['GET /v1/shelves/1/books?parent=shelves/2', 'PATH_VARIABLE_OVERRIDDEN', 'parent', undefined],
    ['GET /v1/shelves/1/books?parent=shelves/1', 'PATH_VARIABLE_OVERRIDDEN', 'parent', undefined],
    ['GET /v1/read/2021-01-01T00:00:00Z/K?author.name=J', 'PATH_VARIABLE_OVERRIDDEN', 'author.name', undefined],
    [
      'GET /v1/read/2021-01-01T00:00:00Z/K?read_at=2022-01-01T00:00:00Z',
      'PATH_VARIABLE_OVERRIDDEN',
      'read_at',
      undefined,
    ],
    ['POST /v1/shelves/1/books?book.title=x', 'BODY_FIELD_OVERRIDDEN', 'book.title', undefined],
    ['POST /v1/shelves/1/books/2:addTags?notify=true', 'BODY_FIELD_OVERRIDDEN', 'notify', undefined],
    ['POST /v1/shelves/1/books/2:addTags?notfy=true', 'UNKNOWN_PARAMETER', 'notfy', undefined],
    ['GET /v1/books?genre=novl', 'INVALID_VALUE', 'genre', 'NOVEL'],
    ['GET /v1/books?genre=7', 'INVALID_VALUE', 'genre', undefined],
    ['GET /v1/books?genre=', 'INVALID_VALUE', 'genre', undefined],
    ['GET /v1/books?genre=novel,', 'INVALID_VALUE', 'genre', undefined],
    ['GET /v1/books?authorName=a,,b', 'INVALID_VALUE', 'authorName', undefined],
    ['GET /v1/books?authorName=', 'INVALID_VALUE', 'authorName', undefined],
    ['GET /v1/genres/novl/books/1', 'INVALID_VALUE', 'genre', 'NOVEL'],
    ['GET /v1/genres/novel/books/x', 'INVALID_VALUE', 'pages', undefined],
    ['GET /v1/read/2021-02-30T00:00:00Z/K', 'INVALID_VALUE', 'read_at', undefined],
    ['GET /v1/books?feePercentage=%', 'MALFORMED_ESCAPE', 'feePercentage', undefined],
    ['GET /v1/books?feePercentage=%4', 'MALFORMED_ESCAPE', 'feePercentage', undefined],
    ['GET /v1/books?feePercentage=%gg', 'MALFORMED_ESCAPE', 'feePercentage', undefined],
    ['GET /v1/books?%zz=1', 'MALFORMED_ESCAPE', undefined, undefined],
    ['GET /v1/books?feePercentage=%ff', 'INVALID_UTF8', 'feePercentage', undefined],
    ['GET /v1/books?feePercentage=%C0%AF', 'INVALID_UTF8', 'feePercentage', undefined],
    ['GET /v1/books?feePercentage=%ED%A0%80', 'INVALID_UTF8', 'feePercentage', undefined],
    ['GET /v1/books?feePercentage=\u00fc', 'INVALID_UTF8', 'feePercentage', undefined],
    [`GET /v1/books?${'author.'.repeat(200)}name=1`, 'TOO_DEEP', `${'author.'.repeat(200)}name`, undefined],
  ])('%s', (target, kind, field, suggestion) => {
    const { decode } = routeFor(target)
    expect(() => decode()).toThrow(expect.objectContaining({ name: 'TranscodingError', kind, field, suggestion }))
  })

  test('the message names the parameter and the nearest known one', () => {
    const { decode } = routeFor('GET /v1/books?limti=1')
    expect(() => decode()).toThrow('unknown parameter "limti"; did you mean "limit"?')
  })

  test('a long value is cut in the message and whole in the error', () => {
    const { decode } = routeFor(`GET /v1/books?limit=${'9'.repeat(5000)}`)
    expect(() => decode()).toThrow(expect.objectContaining({ value: '9'.repeat(5000) }))
    expect(() => decode()).toThrow(/^.{1,250}$/)
  })
})

describe('bad bodies', () => {
  const create = 'POST /v1/shelves/1/books'
  test.each<[string, string | Uint8Array, TranscodingErrorKind, string | undefined, string | undefined]>([
    [create, '{', 'MALFORMED_JSON', undefined, undefined],
    [create, ' ', 'MALFORMED_JSON', undefined, undefined],
    [create, "{'title':'x'}", 'MALFORMED_JSON', undefined, undefined],
    [create, '{"title":"x"} {}', 'MALFORMED_JSON', undefined, undefined],
    [create, new Uint8Array([0x22, 0xff, 0x22]), 'INVALID_UTF8', undefined, undefined],
    [create, '{"titel":"x"}', 'UNKNOWN_JSON_FIELD', 'titel', 'title'],
    [create, '{"author":{"nam":"x"}}', 'UNKNOWN_JSON_FIELD', 'author.nam', 'author.name'],
    [create, '{"editors":[{},{"nam":"x"}]}', 'UNKNOWN_JSON_FIELD', 'editors[1].nam', 'editors[1].name'],
    [create, '{"__proto__":{}}', 'UNKNOWN_JSON_FIELD', '__proto__', undefined],
    [create, '{"constructor":1}', 'UNKNOWN_JSON_FIELD', 'constructor', undefined],
    [create, '{"title":"x","title":"y"}', 'DUPLICATE_JSON_FIELD', 'title', undefined],
    [create, '{"title":"x","\\u0074itle":"y"}', 'DUPLICATE_JSON_FIELD', 'title', undefined],
    [
      create,
      '{"author":{"birthPlace":"x","birth_place":"y"}}',
      'DUPLICATE_JSON_FIELD',
      'author.birth_place',
      undefined,
    ],
    [create, '{"shelf":"x","box":1}', 'ONEOF_CONFLICT', 'box', undefined],
    [create, '{"genre":"novel"}', 'INVALID_VALUE', 'genre', 'NOVEL'],
    [create, '{"genre":9}', 'INVALID_VALUE', 'genre', undefined],
    [create, '{"genre":true}', 'INVALID_VALUE', 'genre', undefined],
    [create, '{"pages":"0x10"}', 'INVALID_VALUE', 'pages', undefined],
    [create, '{"pages":1.5}', 'INVALID_VALUE', 'pages', undefined],
    [create, '{"pages":2147483648}', 'INVALID_VALUE', 'pages', undefined],
    [create, '{"pages":true}', 'INVALID_VALUE', 'pages', undefined],
    [create, '{"isbn":9007199254740993}', 'INVALID_VALUE', 'isbn', undefined],
    [create, '{"isbn":"0x10"}', 'INVALID_VALUE', 'isbn', undefined],
    [create, '{"copies":{"a":1.5}}', 'INVALID_VALUE', 'copies.a', undefined],
    [create, '{"copies":[1]}', 'INVALID_VALUE', 'copies', undefined],
    [create, '{"rating":"high"}', 'INVALID_VALUE', 'rating', undefined],
    [create, '{"rating":1e39}', 'INVALID_VALUE', 'rating', undefined],
    [create, '{"cover":"!!"}', 'INVALID_VALUE', 'cover', undefined],
    [create, '{"title":1}', 'INVALID_VALUE', 'title', undefined],
    [create, '{"title":"\\ud800"}', 'INVALID_VALUE', 'title', undefined],
    [create, '{"tags":"a"}', 'INVALID_VALUE', 'tags', undefined],
    [create, '{"tags":["a",1]}', 'INVALID_VALUE', 'tags[1]', undefined],
    [create, '{"tags":[null]}', 'INVALID_VALUE', 'tags[0]', undefined],
    [create, '{"published":"2021-02-30T00:00:00Z"}', 'INVALID_VALUE', 'published', undefined],
    [create, '{"published":"2021-02-28"}', 'INVALID_VALUE', 'published', undefined],
    [create, '{"author":[]}', 'INVALID_VALUE', 'author', undefined],
    [create, '[]', 'INVALID_VALUE', undefined, undefined],
    [create, '"x"', 'INVALID_VALUE', undefined, undefined],
    [create, '['.repeat(101), 'TOO_DEEP', undefined, undefined],
    [create, `{"author":${'{"author":'.repeat(100)}`, 'TOO_DEEP', undefined, undefined],
    ['PATCH /v1/shelves/1/books/2', '{"name":"shelves/1/books/3"}', 'PATH_VARIABLE_OVERRIDDEN', 'book.name', undefined],
    [
      'POST /v1/shelves/1/books/2:addTags',
      '{"name":"shelves/1/books/3"}',
      'PATH_VARIABLE_OVERRIDDEN',
      'name',
      undefined,
    ],
    ['POST /v1/shelves/1/books/2:addTags', '{"tag":["a"]}', 'UNKNOWN_JSON_FIELD', 'tag', 'tags'],
    ['POST /v1/shelves/1/books/2:addTags', 'null', 'INVALID_VALUE', undefined, undefined],
    ['PUT /v1/shelves/1/books/2/tags', '{"tags":[]}', 'INVALID_VALUE', undefined, undefined],
    ['PUT /v1/shelves/1/books/2/tags', '["a",2]', 'INVALID_VALUE', '[1]', undefined],
    ['GET /v1/books', '{"limit":1}', 'UNEXPECTED_BODY', undefined, undefined],
  ])('%s %s', (target, body, kind, field, suggestion) => {
    const { decode } = routeFor(target)
    expect(() => decode(body)).toThrow(expect.objectContaining({ name: 'TranscodingError', kind, field, suggestion }))
  })
})

describe('any message that protobuf-es writes as JSON', () => {
  const everything = messageDesc('everything.v1.Everything')

  test('is read back from a body as it was', () => {
    const registry = createRegistry(StringValueSchema)
    // Zeros included: JSON has no -0, which a field without presence would else show.
    const options = { registry, alwaysEmitImplicit: true }
    const mapBody = compileBodyMapping(everything, '*', { registry, maxJsonDepth: 100 })
    fc.assert(
      fc.property(arbitraryMessage(everything, { readable: true }), (message) => {
        const text = toJsonString(everything, message, options)
        fc.pre(!hasEscapedKey(text.replaceAll('"with \\"quotes\\"":', '')))
        const read = create(everything)
        mapBody(read, new TextEncoder().encode(text))
        expect(toJsonString(everything, read, options)).toBe(text)
      }),
      { numRuns: 300 },
    )
  })
})

describe('answers', () => {
  const response: JsonValue = {
    books: [{ title: 'T' }],
    first: { title: 'F' },
    total: 2,
    next: 'n',
    asOf: '2021-01-01T00:00:00Z',
  }
  const emptyBook = {
    name: '',
    title: '',
    genre: 'GENRE_UNSPECIFIED',
    pages: 0,
    tags: [],
    copies: {},
    editors: [],
    cover: '',
    isbn: '0',
    rating: 0,
  }

  test.each<[string, JsonValue, JsonValue]>([
    [
      'GET /v1/shelves/1/books',
      response,
      { ...response, books: [{ ...emptyBook, title: 'T' }], first: { ...emptyBook, title: 'F' } },
    ],
    ['GET /v1/shelves/1/books', {}, { books: [], total: 0 }],
    ['GET /v1/books', response, [{ ...emptyBook, title: 'T' }]],
    ['GET /v1/books', {}, []],
    ['GET /v1/first', response, { ...emptyBook, title: 'F' }],
    ['GET /v1/first', {}, emptyBook],
    ['GET /v1/next', response, 'n'],
    ['GET /v1/next', {}, null],
    ['GET /v1/as-of', response, '2021-01-01T00:00:00Z'],
    ['GET /v1/as-of', {}, null],
    ['GET /v1/total', {}, 0],
  ])('%s %j', (target, message, expected) => {
    const { route } = routeFor(target)
    expect(JSON.parse(route.encodeResponse(fromJson(route.method.output, message)))).toEqual(expected)
  })

  test('the empty answer of a route is that of a created message', () => {
    const { route } = routeFor('GET /v1/shelves/1/books')
    expect(route.encodeResponse(create(route.method.output))).toBe('{"books":[],"total":0}')
  })
})

describe('rules that do not fit fail at start-up', () => {
  test.each<[string, Record<string, HttpRule>, string]>([
    ['a broken template', { GetBook: rule('get', '/v1/{name') }, 'column 10: expected "}", found the end'],
    [
      'an unknown variable',
      { GetBook: rule('get', '/v1/{nam}') },
      'the path variable nam is no field of library.v1.GetBookRequest',
    ],
    ['a message as variable', { GetBook: rule('get', '/v1/{author}') }, 'must be a singular scalar or enum'],
    ['a list as variable', { AddTags: rule('get', '/v1/{tags}') }, 'must be a singular scalar or enum'],
    [
      'a variable within a scalar',
      { GetBook: rule('get', '/v1/{name.x}') },
      'needs a message in library.v1.GetBookRequest.name',
    ],
    ['an unknown body', { CreateBook: rule('post', '/v1/x', { body: 'bok' }) }, 'body names bok'],
    ['an unknown response body', { GetBook: rule('get', '/v1/x', { responseBody: 'x' }) }, 'response_body names x'],
    ['no pattern', { GetBook: { ...rule('get', ''), pattern: { case: undefined } } }, 'the rule has no pattern'],
    [
      'a custom kind that is no method',
      { GetBook: { ...rule('get', ''), pattern: { case: 'custom', value: { kind: 'A B', path: '/' } } } },
      'is no HTTP method',
    ],
    [
      'nested additional bindings',
      {
        GetBook: rule('get', '/a', {
          additionalBindings: [rule('get', '/b', { additionalBindings: [rule('get', '/c')] })],
        }),
      },
      'do not nest',
    ],
  ])('%s', (_what, given, problem) => {
    expect(() => compile(given)).toThrow(InvalidHttpRuleError)
    expect(() => compile(given)).toThrow(problem)
  })

  test('two methods on one path', () => {
    const given = { GetBook: rule('get', '/v1/{name}'), ListBooks: rule('get', '/v1/{parent}') }
    expect(() => compile(given)).toThrow(DuplicateRouteError)
    expect(() => compile(given)).toThrow('two routes match GET /v1/*')
  })
})

test('methods without a rule have no route', () => {
  expect(compile({ GetBook: rule('get', '/v1/{name}') }).routes).toHaveLength(1)
})
