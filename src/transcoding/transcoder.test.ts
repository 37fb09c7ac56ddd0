import { create, fromJson, type JsonValue } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import type { HttpRule } from './http-rule.ts'
import { DuplicateRouteError } from './paths/router.ts'
import { compile, decodeToJson, routeFor, rule } from './testdata/library.ts'
import { InvalidHttpRuleError } from './transcoder.ts'

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
