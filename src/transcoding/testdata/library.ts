import {
  type DescMessage,
  type DescMethod,
  type DescService,
  type JsonValue,
  type Message,
  toJson,
} from '@bufbuild/protobuf'
import { compileProtos } from '../../../test/support/compile-protos.ts'
import type { HttpRule } from '../http-rule.ts'
import { compileRoutes, type Route, type TranscoderOptions } from '../transcoder.ts'

export const files = compileProtos(import.meta.dirname)
const library = serviceDesc('library.v1.LibraryService')

function serviceDesc(typeName: string): DescService {
  const desc = files.getService(typeName)
  if (desc === undefined) throw new Error(`no service ${typeName}`)
  return desc
}

/** A message of the proto files of this folder. */
export function messageDesc(typeName: string): DescMessage {
  const desc = files.getMessage(typeName)
  if (desc === undefined) throw new Error(`no message ${typeName}`)
  return desc
}

/** A google.api.http rule as its generated message would be. */
export function rule(
  verb: 'get' | 'put' | 'post' | 'delete' | 'patch',
  path: string,
  more: Partial<HttpRule> = {},
): HttpRule {
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

/** Compiles the library's routes, those of the tables by default. */
export function compile(given: Record<string, HttpRule> = rules, options: Partial<TranscoderOptions> = {}) {
  return compileRoutes([library], { httpRule: (method: DescMethod) => given[method.name], ...options })
}

const transcoder = compile(rules, {
  isCommaSeparated: (field) => field.name === 'genre' || field.name === 'author_name',
})

/** Finds the route of `GET /path?query` and how it decodes that request. */
export function routeFor(target: string): { route: Route; decode: (body?: string | Uint8Array) => Message } {
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

export function decodeToJson(target: string, body?: string | Uint8Array): JsonValue {
  const { route, decode } = routeFor(target)
  return toJson(route.method.input, decode(body))
}
