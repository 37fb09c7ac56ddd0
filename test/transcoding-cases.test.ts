import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { create, fromJson, type JsonValue, toBinary, toJsonString } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { httpStatusOf } from '../src/transcoding/http-status.ts'
import { compileQueryMapping } from '../src/transcoding/query-mapping.ts'
import { createRouter } from '../src/transcoding/router.ts'
import { parseTemplate, segmentText, TemplateError } from '../src/transcoding/template-parser.ts'
import { TranscodingError } from '../src/transcoding/transcoding-error.ts'
import { compileProtos } from './support/compile-protos.ts'

/*
 * Facts on google.api.http that four gateways agree on; `cases/transcoding/README.md` describes the format. Another folder of
 * the same format runs with TRANSCODING_CASES=DIR.
 */
const ownCases = join(import.meta.dirname, 'cases/transcoding')
const folder = process.env['TRANSCODING_CASES'] ?? ownCases

interface CaseHead {
  readonly id: string
  readonly source: string
  /** The setting under which the expectation holds. */
  readonly options?: Readonly<Record<string, JsonValue>>
}

interface TemplateCase extends CaseHead {
  readonly kind: 'template-parse'
  readonly template: string
  readonly expect:
    | { readonly valid: false }
    | {
        readonly valid: true
        readonly segments: readonly string[]
        readonly verb: string
        /** The bounds of each variable over the segments; an end below zero counts from the end. */
        readonly vars: Readonly<Record<string, readonly [number, number]>>
      }
}

interface PathCase extends CaseHead {
  readonly kind: 'path-match'
  readonly routes: readonly string[]
  readonly request: { readonly method: string; readonly path: string }
  readonly expect: { readonly route: string | null; readonly vars: Readonly<Record<string, string>> }
}

interface QueryCase extends CaseHead {
  readonly kind: 'query-map'
  readonly message: string
  readonly query: string
  readonly expect: { readonly json: JsonValue } | { readonly error: true }
}

interface ErrorCase extends CaseHead {
  readonly kind: 'error-map'
  readonly grpc: { readonly code: number; readonly name: string }
  readonly expect: { readonly http: number }
}

type Case = TemplateCase | PathCase | QueryCase | ErrorCase

const cases = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .flatMap((name) => (JSON.parse(readFileSync(join(folder, name), 'utf8')) as { cases: Case[] }).cases)

const hasProtos = readdirSync(folder).some((name) => name.endsWith('.proto'))
const registry = compileProtos(hasProtos ? folder : ownCases)

/** The settings that this transcoder has, none of which can be changed. */
const ourSettings: Readonly<Record<string, JsonValue>> = { unknown: 'reject' }

function holdsHere({ options = {} }: CaseHead): boolean {
  return Object.entries(options).every(([name, value]) => ourSettings[name] === value)
}

describe.each(['template-parse', 'path-match', 'query-map', 'error-map'] as const)('%s', (kind) => {
  const ofKind = cases.filter((each) => each.kind === kind)
  for (const each of ofKind) {
    test.skipIf(!holdsHere(each))(`${each.id} (${each.source}): ${titleOf(each)}`, () => run(each))
  }
  if (folder === ownCases)
    test('has cases, all of which hold here', () => expect(ofKind.filter(holdsHere)).not.toEqual([]))
})

test('the own cases are 195', () => {
  if (folder === ownCases) expect(cases).toHaveLength(195)
  expect(cases).not.toHaveLength(0)
})

function titleOf(each: Case): string {
  switch (each.kind) {
    case 'template-parse':
      return JSON.stringify(each.template)
    case 'path-match':
      return `${each.request.method} ${each.request.path}`
    case 'query-map':
      return each.query
    case 'error-map':
      return each.grpc.name
  }
}

function run(each: Case): void {
  switch (each.kind) {
    case 'template-parse':
      return runTemplateCase(each)
    case 'path-match':
      return runPathCase(each)
    case 'query-map':
      return runQueryCase(each)
    case 'error-map':
      return expect(httpStatusOf(each.grpc.code)).toBe(each.expect.http)
  }
}

function runTemplateCase({ template, expect: expected }: TemplateCase): void {
  if (!expected.valid) {
    expect(() => parseTemplate(template)).toThrow(TemplateError)
    return
  }
  const parsed = parseTemplate(template)
  const vars = Object.fromEntries(parsed.variables.map(({ fieldPath, start, end }) => [fieldPath, [start, end]]))
  expect({ segments: parsed.segments.map(segmentText), verb: parsed.verb, vars }).toEqual({
    segments: expected.segments,
    verb: expected.verb,
    vars: expected.vars,
  })
}

function runPathCase({ routes, request, expect: expected }: PathCase): void {
  const router = createRouter(routes.map(toEntry))
  const match = router.match(request.method, request.path)
  if (match.kind !== 'match') {
    expect(expected.route).toBeNull()
    return
  }
  const vars = Object.fromEntries(match.variables.map(({ fieldPath, value }) => [fieldPath, upperCaseSlash(value)]))
  const expectedVars = Object.entries(expected.vars).map(([name, value]) => [name, upperCaseSlash(value)] as const)
  expect({ route: match.route, vars }).toEqual({ route: expected.route, vars: Object.fromEntries(expectedVars) })
}

function toEntry(route: string) {
  const space = route.indexOf(' ')
  return { httpMethod: route.slice(0, space), template: parseTemplate(route.slice(space + 1)), route }
}

/** An escaped slash that stays escaped may be written `%2f` or `%2F`. */
function upperCaseSlash(value: string): string {
  return value.replaceAll('%2f', '%2F')
}

function runQueryCase({ message: typeName, query, expect: expected }: QueryCase): void {
  const desc = registry.getMessage(typeName)
  if (desc === undefined) throw new Error(`no message ${typeName} in the cases' proto files`)
  const mapQuery = compileQueryMapping(desc, {
    boundInPath: [],
    boundInBody: '',
    isCommaSeparated: () => false,
    maxDepth: 100,
  })
  const message = create(desc)
  if ('error' in expected) {
    expect(() => mapQuery(message, toWire(query))).toThrow(TranscodingError)
    return
  }
  mapQuery(message, toWire(query))
  const wanted = fromJson(desc, expected.json)
  // The bytes tell an unset field from an empty one, and NaN equals NaN. The JSON is for the reader of a failure.
  expect(toJsonString(desc, message)).toBe(toJsonString(desc, wanted))
  expect(toBinary(desc, message)).toEqual(toBinary(desc, wanted))
}

/** A query as Node's request.url has it: one character a byte. */
function toWire(query: string): string {
  return Buffer.from(query, 'utf8').toString('latin1')
}
