import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { create, fromJson, type JsonValue, type Message, toBinary, toJson } from '@bufbuild/protobuf'
import { codeToHttpStatus } from '@connectrpc/connect/protocol-connect'
import { describe, expect, test } from 'vitest'
import { httpErrorBody, wireFormOf } from '../../src/api/calls/error-mapping.ts'
import { type Reason, reasons } from '../../src/errors/reasons.ts'
import { WaybillError } from '../../src/errors/waybill-error.ts'
import { TranscodingError } from '../../src/transcoding/errors/transcoding-error.ts'
import { createRouter } from '../../src/transcoding/paths/router.ts'
import { parseTemplate, segmentText, TemplateError } from '../../src/transcoding/paths/template-parser.ts'
import { compileQueryMapping } from '../../src/transcoding/query-mapping.ts'
import { compileProtos } from '../support/compile-protos.ts'

/*
 * Facts on google.api.http that four gateways agree on; `cases/transcoding/README.md` describes the format. Another folder of
 * the same format runs with TRANSCODING_CASES=DIR.
 */
const ownCases = join(import.meta.dirname, '../cases/transcoding')
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
  readonly grpc: { readonly code: number; readonly name: string; readonly message?: string }
  readonly expect: { readonly http: number; readonly message?: string }
}

const reasonNames = Object.keys(reasons) as Reason[]

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

test('the folder holds cases; the own one 195, all of which hold here', () => {
  const own = folder === ownCases
  expect(own ? cases.filter(holdsHere).length : Math.min(cases.length, 1)).toBe(own ? 195 : 1)
})

describe.each(['template-parse', 'path-match', 'query-map', 'error-map'] as const)('%s', (kind) => {
  for (const each of cases.filter((one) => one.kind === kind)) {
    test.skipIf(!holdsHere(each))(`${each.id} (${each.source}): ${titleOf(each)}`, () => {
      const { actual, expected } = run(each)
      expect(actual).toEqual(expected)
    })
  }
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

interface Outcome {
  readonly actual: unknown
  readonly expected: unknown
}

function run(each: Case): Outcome {
  switch (each.kind) {
    case 'template-parse':
      return runTemplateCase(each)
    case 'path-match':
      return runPathCase(each)
    case 'query-map':
      return runQueryCase(each)
    case 'error-map':
      return runErrorCase(each)
  }
}

const refused = 'refused'

/** The result, or `refused` where the error is of the given kind; any other error is thrown on. */
function orRefused<T>(kind: new (...args: never[]) => Error, attempt: () => T): T | typeof refused {
  try {
    return attempt()
  } catch (error) {
    if (error instanceof kind) return refused
    throw error
  }
}

function runTemplateCase({ template, expect: expected }: TemplateCase): Outcome {
  const actual = orRefused(TemplateError, () => {
    const { segments, verb, variables } = parseTemplate(template)
    const vars = Object.fromEntries(variables.map(({ fieldPath, start, end }) => [fieldPath, [start, end]]))
    return { valid: true, segments: segments.map(segmentText), verb, vars }
  })
  return { actual, expected: expected.valid ? expected : refused }
}

function runPathCase({ routes, request, expect: expected }: PathCase): Outcome {
  const match = createRouter(routes.map(toEntry)).match(request.method, request.path)
  if (match.kind !== 'match') return { actual: null, expected: expected.route }
  const vars = match.variables.map(({ fieldPath, value }) => [fieldPath, value] as const)
  return {
    actual: { route: match.route, vars: upperCaseSlashes(vars) },
    expected: { route: expected.route, vars: upperCaseSlashes(Object.entries(expected.vars)) },
  }
}

function toEntry(route: string) {
  const space = route.indexOf(' ')
  return { httpMethod: route.slice(0, space), template: parseTemplate(route.slice(space + 1)), route }
}

/** An escaped slash that stays escaped may be written `%2f` or `%2F`. */
function upperCaseSlashes(vars: readonly (readonly [string, string])[]): Record<string, string> {
  return Object.fromEntries(vars.map(([name, value]) => [name, value.replaceAll('%2f', '%2F')]))
}

function runQueryCase({ message: typeName, query, expect: expected }: QueryCase): Outcome {
  const desc = registry.getMessage(typeName)
  if (desc === undefined) throw new Error(`no message ${typeName} in the cases' proto files`)
  // The bytes distinguish an unset field from an empty one, and NaN equals NaN. The JSON is for the reader of a failure.
  const describeMessage = (message: Message) => ({ json: toJson(desc, message), bytes: toBinary(desc, message) })
  const mapQuery = compileQueryMapping(desc, {
    boundInPath: [],
    boundInBody: '',
    isCommaSeparated: () => false,
  })
  const actual = orRefused(TranscodingError, () => {
    const message = create(desc)
    mapQuery(message, toWire(query))
    return describeMessage(message)
  })
  return { actual, expected: 'error' in expected ? refused : describeMessage(fromJson(desc, expected.json)) }
}

/** The message is carried by an error of a reason that has the code; not every code has one. */
function runErrorCase({ grpc, expect: expected }: ErrorCase): Outcome {
  const reason = reasonNames.find((name) => {
    const { code, httpStatus }: { code: number; httpStatus: number } = wireFormOf(name, 'rest')
    return code === grpc.code && httpStatus === expected.http
  })
  const http = codeToHttpStatus(grpc.code)
  if (expected.message === undefined || reason === undefined) return { actual: http, expected: expected.http }
  const body = JSON.parse(httpErrorBody(new WaybillError(reason, grpc.message ?? '', {}, {}))) as { message: string }
  return { actual: { http, message: body.message }, expected: { http: expected.http, message: expected.message } }
}

/** A query as Node's request.url has it: one character a byte. */
function toWire(query: string): string {
  return Buffer.from(query, 'utf8').toString('latin1')
}
