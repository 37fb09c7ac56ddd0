import { describe, expect, test } from 'vitest'
import type { TranscodingErrorKind } from './errors/transcoding-error.ts'
import { routeFor } from './testdata/library.ts'

describe('bad queries and paths', () => {
  test.each<[string, TranscodingErrorKind, string | undefined, string | undefined]>([
    ['GET /v1/books?feePercentagee=1', 'UNKNOWN_PARAMETER', 'feePercentagee', undefined],
    ['GET /v1/books?FEEPERCENTAGE=1', 'UNKNOWN_PARAMETER', 'FEEPERCENTAGE', undefined],
    ['GET /v1/books?fee_percentag=1', 'UNKNOWN_PARAMETER', 'fee_percentag', undefined],
    ['GET /v1/books?limti=1', 'UNKNOWN_PARAMETER', 'limti', undefined],
    ['GET /v1/books?whatever=1', 'UNKNOWN_PARAMETER', 'whatever', undefined],
    ['GET /v1/books?__proto__=1', 'UNKNOWN_PARAMETER', '__proto__', undefined],
    ['GET /v1/books?constructor=1', 'UNKNOWN_PARAMETER', 'constructor', undefined],
    ['GET /v1/books?toString=1', 'UNKNOWN_PARAMETER', 'toString', undefined],
    ['GET /v1/books?__proto__.x=1', 'UNKNOWN_PARAMETER', '__proto__.x', undefined],
    ['GET /v1/books?=1', 'UNKNOWN_PARAMETER', '', undefined],
    ['GET /v1/books?author.nam=1', 'UNKNOWN_PARAMETER', 'author.nam', undefined],
    ['GET /v1/books?autor.name=1', 'UNKNOWN_PARAMETER', 'autor.name', undefined],
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
    ['GET /v1/books?genre=novl', 'INVALID_VALUE', 'genre[0]', undefined],
    ['GET /v1/books?genre=7', 'INVALID_VALUE', 'genre[0]', undefined],
    ['GET /v1/books?genre=', 'INVALID_VALUE', 'genre', undefined],
    ['GET /v1/books?genre=novel,', 'INVALID_VALUE', 'genre[1]', undefined],
    ['GET /v1/books?authorName=a,,b', 'INVALID_VALUE', 'authorName[1]', undefined],
    ['GET /v1/books?authorName=', 'INVALID_VALUE', 'authorName', undefined],
    ['GET /v1/genres/novl/books/1', 'INVALID_VALUE', 'genre', undefined],
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

  test.each([
    [
      'limti',
      'parent genre authorName feePercentage limit author.name author.birthPlace editors labels note'.split(' '),
    ],
    ['author.nam', ['author.name', 'author.birthPlace']],
  ])('an unknown parameter %s carries the names that are known in its place', (name, known) => {
    const { decode } = routeFor(`GET /v1/books?${name}=1`)
    expect(() => decode()).toThrow(expect.objectContaining({ message: `unknown parameter "${name}"`, known }))
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
    [create, '{"titel":"x"}', 'UNKNOWN_JSON_FIELD', 'titel', undefined],
    [create, '{"author":{"nam":"x"}}', 'UNKNOWN_JSON_FIELD', 'author.nam', undefined],
    [create, '{"editors":[{},{"nam":"x"}]}', 'UNKNOWN_JSON_FIELD', 'editors[1].nam', undefined],
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
    [create, '{"genre":"novel"}', 'INVALID_VALUE', 'genre', undefined],
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
    ['POST /v1/shelves/1/books/2:addTags', '{"tag":["a"]}', 'UNKNOWN_JSON_FIELD', 'tag', undefined],
    ['POST /v1/shelves/1/books/2:addTags', 'null', 'INVALID_VALUE', undefined, undefined],
    ['PUT /v1/shelves/1/books/2/tags', '{"tags":[]}', 'INVALID_VALUE', undefined, undefined],
    ['PUT /v1/shelves/1/books/2/tags', '["a",2]', 'INVALID_VALUE', '[1]', undefined],
    ['GET /v1/books', '{"limit":1}', 'UNEXPECTED_BODY', undefined, undefined],
  ])('%s %s', (target, body, kind, field, suggestion) => {
    const { decode } = routeFor(target)
    expect(() => decode(body)).toThrow(expect.objectContaining({ name: 'TranscodingError', kind, field, suggestion }))
  })

  test('an unknown field carries the names that are known in its place', () => {
    const { decode } = routeFor(create)
    const known = ['author.name', 'author.birthPlace']
    expect(() => decode('{"author":{"nam":"x"}}')).toThrow(
      expect.objectContaining({ message: 'unknown field "author.nam"', known }),
    )
  })
})
