import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createRouter, DuplicateRouteError } from './router.ts'
import { type PathTemplate, parseTemplate, patternOf } from './template-parser.ts'

function routerOf(...routes: readonly string[]) {
  return createRouter(
    routes.map((route) => {
      const [httpMethod = '', path = ''] = route.split(' ')
      return { httpMethod, template: parseTemplate(path), route }
    }),
  )
}

describe('paths and what they capture', () => {
  const router = routerOf(
    'GET /v1/request/{ref}/routes',
    'GET /v1/request/{ref}',
    'POST /v1/request',
    'GET /v1/files/{path=**}',
    'GET /v1/kinds/{kind=books}',
    'GET /v1/tail/**/{end=last}',
    'POST /v1/request/{ref}:cancel',
    'POST /v1/all/**:cancel',
    'GET /caf%C3%A9',
    'REPORT /v1/request/{ref}',
    '* /any/{x}',
    'GET /any/{x}/y',
  )
  test.each<[string, string, string, Record<string, string>]>([
    ['GET', '/v1/request/a%2Fb/routes', 'GET /v1/request/{ref}/routes', { ref: 'a/b' }],
    ['GET', '/v1/request/a%252Fb/routes', 'GET /v1/request/{ref}/routes', { ref: 'a%2Fb' }],
    ['GET', '/v1/request/a+b', 'GET /v1/request/{ref}', { ref: 'a+b' }],
    ['GET', '/v1/request/routes', 'GET /v1/request/{ref}', { ref: 'routes' }],
    ['GET', '/v1/request/..', 'GET /v1/request/{ref}', { ref: '..' }],
    ['GET', '/v1/%72equest/x', 'GET /v1/request/{ref}', { ref: 'x' }],
    ['HEAD', '/v1/request/x', 'GET /v1/request/{ref}', { ref: 'x' }],
    ['GET', '/v1/files', 'GET /v1/files/{path=**}', { path: '' }],
    ['GET', '/v1/files/a%2fb/c%20d', 'GET /v1/files/{path=**}', { path: 'a%2fb/c d' }],
    ['GET', '/v1/kinds/books', 'GET /v1/kinds/{kind=books}', { kind: 'books' }],
    ['GET', '/v1/tail/x/y/last', 'GET /v1/tail/**/{end=last}', { end: 'last' }],
    ['GET', '/v1/tail/last', 'GET /v1/tail/**/{end=last}', { end: 'last' }],
    ['POST', '/v1/request/x:cancel', 'POST /v1/request/{ref}:cancel', { ref: 'x' }],
    ['POST', '/v1/request/x:y:cancel', 'POST /v1/request/{ref}:cancel', { ref: 'x:y' }],
    ['GET', '/v1/request/x:cancel', 'GET /v1/request/{ref}', { ref: 'x:cancel' }],
    ['GET', '/v1/request/x:', 'GET /v1/request/{ref}', { ref: 'x:' }],
    ['POST', '/v1/all/x/y:cancel', 'POST /v1/all/**:cancel', {}],
    ['GET', '/caf%C3%A9', 'GET /caf%C3%A9', {}],
    ['GET', '/caf%c3%a9', 'GET /caf%C3%A9', {}],
    ['GET', Buffer.from('/café').toString('latin1'), 'GET /caf%C3%A9', {}],
    ['REPORT', '/v1/request/x', 'REPORT /v1/request/{ref}', { ref: 'x' }],
    ['PURGE', '/any/x', '* /any/{x}', { x: 'x' }],
    ['GET', '/any/x', '* /any/{x}', { x: 'x' }],
    ['GET', '/any/x/y', 'GET /any/{x}/y', { x: 'x' }],
  ])('%s %s', (method, path, route, variables) => {
    const match = router.match(method, path)
    const captured = match.kind === 'match' ? match.variables.map((each) => [each.fieldPath, each.value]) : []
    expect({ ...match, variables: Object.fromEntries(captured) }).toEqual({ kind: 'match', route, variables })
  })

  test.each([
    '/v1/request//routes',
    '/v1/request/',
    '/v1/request/x/',
    '//v1/request/x',
    '/v1/files/',
    '/v1/files//a',
    '/V1/request/x',
    '/v1',
    '/',
    '',
    '*',
    'v1/request/x',
    'http://host/v1/request/x',
    '/v1/all/:cancel',
    '/v1/request/:cancel/x/y',
  ])('%j is not found', (path) => {
    expect(router.match('GET', path)).toEqual({ kind: 'not_found' })
  })

  test.each<[string, string]>([
    ['/v1/request/%', 'MALFORMED_ESCAPE'],
    ['/v1/request/%4', 'MALFORMED_ESCAPE'],
    ['/v1/request/%zz/routes', 'MALFORMED_ESCAPE'],
    ['/unknown/%zz', 'MALFORMED_ESCAPE'],
    ['/v1/request/%ff', 'INVALID_UTF8'],
    ['/v1/request/%C0%AF', 'INVALID_UTF8'],
    ['/v1/request/%ED%A0%80', 'INVALID_UTF8'],
    ['/v1/request/\u00ff', 'INVALID_UTF8'],
  ])('%j is malformed', (path, kind) => {
    expect(router.match('GET', path)).toMatchObject({ kind: 'malformed', error: { kind } })
  })

  test.each<[string, string, string[]]>([
    ['DELETE', '/v1/request/x', ['GET', 'HEAD', 'REPORT']],
    ['get', '/v1/request/x', ['GET', 'HEAD', 'REPORT']],
    ['GET', '/v1/request', ['POST']],
    ['HEAD', '/v1/request', ['POST']],
    ['OPTIONS', '/v1/request/x:cancel', ['GET', 'HEAD', 'POST', 'REPORT']],
    ['POST', '/any/x/y', ['GET', 'HEAD']],
  ])('%s %s is not allowed', (method, path, allow) => {
    expect(router.match(method, path)).toEqual({ kind: 'method_not_allowed', allow })
  })
})

describe('the most specific route wins, whatever the order', () => {
  test.each<[string, string[], string]>([
    ['/a/b', ['/**', '/*/*', '/a/*', '/a/b'], '/a/b'],
    ['/a/c', ['/**', '/*/*', '/a/*', '/a/b'], '/a/*'],
    ['/x/b', ['/**', '/*/*', '/*/b', '/a/*'], '/*/b'],
    ['/a/b', ['/*/b', '/a/*'], '/a/*'],
    ['/a/b/d', ['/a/b/c', '/a/*/d', '/**'], '/a/*/d'],
    ['/a/b/e', ['/a/b/c', '/a/*/d', '/**'], '/**'],
    ['/a', ['/a/**', '/a'], '/a'],
    ['/a/x/y/z', ['/a/**', '/a/**/z', '/a/**/y/z'], '/a/**/y/z'],
    ['/a/y/z', ['/a/**', '/a/**/z', '/a/**/y/z'], '/a/**/y/z'],
    ['/a/b:v', ['/a/*', '/a/*:v', '/a/b:v'], '/a/b:v'],
    ['/a/b:v:w', ['/a/*:w', '/a/*:v:w', '/a/*'], '/a/*:v:w'],
    ['/:v', ['/**:v'], '/**:v'],
  ])('%s', (path, templates, winner) => {
    for (const order of [templates, templates.toReversed()]) {
      const match = routerOf(...order.map((template) => `GET ${template}`)).match('GET', path)
      expect(match).toMatchObject({ kind: 'match', route: `GET ${winner}` })
    }
  })
})

test.each([
  ['GET /a/{x}', 'GET /a/{y}'],
  ['GET /a/{x=**}', 'GET /a/**'],
  ['GET /a/**/b', 'GET /a/{x=**/b}'],
  ['GET /a:v', 'GET /a:v'],
  ['GET /%61', 'GET /a'],
  ['GET /a', 'GET /a'],
])('%s beside %s fails at start-up', (...routes) => {
  expect(() => routerOf(...routes)).toThrow(DuplicateRouteError)
})

describe('against a matcher that tries every route', () => {
  const segment = fc.constantFrom('a', 'b', '*', '**')
  const template = fc
    .tuple(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.constantFrom('', ':v', ':v:w'))
    .map(([segments, verb]) => `/${segments.join('/')}${verb}`)
    .filter((text) => !/\*\*.*\*/.test(text))
  const routes = fc.uniqueArray(template, { minLength: 1, maxLength: 8 })
  const path = fc
    .tuple(fc.array(fc.constantFrom('a', 'b', 'c', 'a:v', 'b:v:w'), { minLength: 1, maxLength: 5 }))
    .map(([segments]) => `/${segments.join('/')}`)

  test('finds a route exactly where one matches, and always the same one', () => {
    fc.assert(
      fc.property(routes, path, (templates, request) => {
        const all = templates.map((text) => `GET ${text}`)
        const match = routerOf(...all).match('GET', request)
        const again = routerOf(...all.toReversed()).match('GET', request)
        const matching = templates.filter((text) => matchesSlowly(parseTemplate(text), request))
        expect(match).toEqual(again)
        expect(match.kind).toBe(matching.length > 0 ? 'match' : 'not_found')
        if (match.kind === 'match') expect(matching.map((text) => `GET ${text}`)).toContain(match.route)
      }),
      { numRuns: 2000 },
    )
  })

  function matchesSlowly(parsed: PathTemplate, request: string): boolean {
    const pattern = patternOf(parsed)
      .replaceAll('/**', '(?:/ANY)@')
      .replaceAll('/*', '/[^/]+')
      .replaceAll('/ANY', '/[^/]+')
      .replaceAll('@', '*')
    return new RegExp(`^${pattern}$`).test(request)
  }
})
