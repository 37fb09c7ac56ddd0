import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it, test } from 'vitest'
import { bindingsOf } from '../../transcoding/http-rule.ts'
import { httpRuleOf } from '../messages/proto-options.ts'
import { createPaymentsServices, type PaymentsCalls } from '../services/payments-services.ts'
import { headersOfMethods } from './common-parts.ts'
import { describeApi } from './describe-api.ts'
import type { JsonSchema, Parameter } from './openapi-document.ts'
import { firstSentence, readComment, reasonsIn } from './read-definitions.ts'

/** Nothing is called. */
const services = createPaymentsServices({} as PaymentsCalls)
const documents = {
  '3.1': describeApi({ services, release: '1.2.3', version: '3.1' }),
  '3.2': describeApi({ services, release: '1.2.3', version: '3.2' }),
}
const operations = Object.values(documents['3.1'].paths).flatMap((item) => Object.values(item))

describe('the description of payments.v1', () => {
  it.each(['3.1', '3.2'] as const)('is OpenAPI %s, and the same each time', async (version) => {
    const text = JSON.stringify(documents[version])
    expect(JSON.stringify(describeApi({ services, release: '1.2.3', version }))).toBe(text)
    const validator = new Validator()
    expect(await validator.validate(JSON.parse(text))).toEqual({ valid: true })
    expect(validator.version).toBe(version)
  })

  it('refers only to parts that it has, and has no parts to which nothing refers', () => {
    for (const document of Object.values(documents)) {
      const targets = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(\w+\/[\w-]+)"/g)].map(
        ([, to]) => to,
      )
      const { securitySchemes: _, ...components } = document.components
      const parts = Object.entries(components).flatMap(([kind, all]) =>
        Object.keys(all).map((name) => `${kind}/${name}`),
      )
      expect(new Set(targets)).toEqual(new Set(parts))
    }
  })

  it('has an operation for each binding, each with an id of its own, errors and a scope', () => {
    const bindings = services.flatMap(({ service }) =>
      service.methods.flatMap((method) => bindingsOf(httpRuleOf(method)!).map(({ path }) => path)),
    )
    const ofServices = operations.filter((operation) => operation['x-rpc'] !== undefined)
    expect(ofServices).toHaveLength(bindings.length)
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
    for (const { operationId, responses, security, description } of ofServices) {
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['200', '400', '401', '403', '429', '500', '503']))
      const scopes = operationId === 'getOwnKey' ? [] : [expect.stringMatching(/^\w+:\w+$/)]
      expect(security[0]?.apiKey).toEqual(scopes)
      expect(description).not.toBe('')
    }
  })

  it('gives texts only formats that generators leave alone, or make a time of', () => {
    const formats = new Set<string>()
    const visit = (node: unknown): void => {
      if (typeof node !== 'object' || node === null) return
      const { type, format } = node as { readonly type?: unknown; readonly format?: unknown }
      const isText = type === 'string' || (Array.isArray(type) && type.includes('string'))
      if (isText && typeof format === 'string') formats.add(format)
      for (const each of Object.values(node)) visit(each)
    }
    visit(documents)
    expect([...formats].toSorted()).toEqual(['date-time', 'decimal-string'])
  })

  it('says of every amount, and of whatever else is exact, that it is a decimal string', () => {
    const money = /(?:^|[a-z])(?:amount|price|rate|percentage|slippage|impact)(?:In[A-Z]\w*)?$|InUSD$/i
    const isText = ({ type }: JsonSchema) => [type].flat().includes('string')
    const texts = (node: unknown): [string, JsonSchema][] => {
      if (typeof node !== 'object' || node === null) return []
      const { properties = {}, name, schema } = node as Partial<Parameter & JsonSchema>
      const parameter: [string, JsonSchema][] = name === undefined || schema === undefined ? [] : [[name, schema]]
      const own = [...Object.entries(properties), ...parameter].filter(([, each]) => isText(each))
      return [...own, ...Object.values(node).flatMap(texts)]
    }
    const found = texts(documents['3.1']).filter(([name]) => money.test(name))
    expect(found.length).toBeGreaterThan(40)
    expect(found.filter(([, { format }]) => format !== 'decimal-string').map(([name]) => name)).toEqual([])
  })

  it('has server-sent events first where a stream has them: generators that know one form take the first', () => {
    const first = operations.flatMap(({ responses }) => {
      const good = responses['200']
      const types = good !== undefined && 'content' in good ? Object.keys(good.content ?? {}) : []
      return types.length > 1 ? [types] : []
    })
    expect(first).toHaveLength(4)
    for (const types of first)
      expect(types[0]).toBe(types.includes('text/csv') ? 'application/x-ndjson' : 'text/event-stream')
  })

  it('describes every parameter', () => {
    const parameters = operations.flatMap((operation) => operation.parameters)
    const bare = parameters.filter((parameter) => 'name' in parameter && !parameter.description)
    expect(bare).toEqual([])
  })

  it('has a parameter for each field of a message in a query, since an object would be sent by the names of its fields', () => {
    const inQuery = documents['3.1'].paths['/payments']?.get?.parameters.filter(
      (each): each is Parameter => 'in' in each && each.in === 'query',
    )
    const excluded = inQuery?.filter(({ name }) => name.startsWith('exclude'))
    expect(excluded?.map(({ name, style, explode }) => [name, style, explode])).toEqual(
      ['status', 'type', 'network', 'currency', 'payer', 'payee'].map((of) => [`exclude.${of}`, 'form', false]),
    )
    const whole = operations
      .flatMap(({ parameters }) => parameters)
      .flatMap((each) => ('schema' in each && '$ref' in each.schema ? [each.schema.$ref] : []))
    const kinds = whole.map((ref) => documents['3.1'].components.schemas[ref.split('/').at(-1) ?? '']?.type)
    expect(kinds.every((type) => type === 'string')).toBe(true)
  })

  it.each(['search', 'summarize', 'export', 'watch'])('says how to ask for own data: %s', (name) => {
    const path = name === 'search' ? '/payments' : `/v1/payments:${name}`
    const inQuery = documents['3.1'].paths[path]?.get?.parameters.filter((each): each is Parameter => 'name' in each)
    const of = (wanted: string) => inQuery?.find((each) => each.name === wanted)
    expect(of('metadata')).toMatchObject({
      // A comma is part of a value: the parameter repeats.
      style: 'form',
      explode: true,
      description: expect.stringContaining('`KEY=VALUE`'),
      schema: { type: 'array', items: { type: 'string' }, examples: [['channel=web']] },
    })
    if (name === 'summarize') {
      const { $ref } = of('groupBy')?.schema.items ?? {}
      expect($ref).toBe('#/components/schemas/PaymentSummaryGroupBy')
      expect(documents['3.1'].components.schemas.PaymentSummaryGroupBy?.enum).toContain('METADATA')
      expect(of('metadataKey')?.schema).toMatchObject({ type: 'string', maxLength: 40, examples: ['channel'] })
    }
    if (name === 'export') {
      expect(of('columns')?.description).toContain('`metadata.KEY`')
      const columns = new RegExp(of('columns')?.schema.items?.pattern ?? '^$')
      for (const column of ['id', 'metadata', 'metadata.a.b', 'gasAmount']) expect(column).toMatch(columns)
      for (const column of ['', 'ids', 'metadata.', 'metadataX', 'metadata.*\n']) expect(column).not.toMatch(columns)
    }
  })

  it('names headers of methods that exist', () => {
    const names = services.flatMap(({ service }) => service.methods.map(({ name }) => `${service.typeName}.${name}`))
    expect(names).toEqual(expect.arrayContaining(Object.keys(headersOfMethods)))
  })

  it('tells a field that may be absent from one that is always there', () => {
    const { required } = documents['3.1'].components.schemas.Payment!
    expect(required).toEqual(expect.arrayContaining(['id', 'timestamp', 'completed', 'fees', 'refundedAmount']))
    expect(required).not.toContain('payer')
    expect(required).not.toContain('gas')
  })

  it('describes messages of a stream by their lines in 3.1, and by items in 3.2', () => {
    const contentOf = (version: '3.1' | '3.2') => {
      const response = documents[version].paths['/v1/payments:watch']?.get?.responses['200']
      return response !== undefined && 'content' in response ? response.content?.['application/x-ndjson'] : undefined
    }
    const line = { properties: { result: { $ref: '#/components/schemas/WatchPaymentsResponse' } } }
    expect(contentOf('3.1')).toMatchObject({ schema: { type: 'string', contentSchema: line } })
    expect(contentOf('3.2')).toMatchObject({ itemSchema: line })
  })
})

test.each([
  ['A. Example: `"x"`.', 'A.', ['x']],
  ['A. Examples: `"x"`, `"y"`. B.', 'A. B.', ['x', 'y']],
  ['A. Example: `0.753`, in USDC.', 'A. Example: `0.753`, in USDC.', [0.753]],
  ['A. Example: `["BASE"]`.', 'A.', [['BASE']]],
  ['A. Example: `not json`.', 'A. Example: `not json`.', []],
  ['A `code` span.', 'A `code` span.', []],
])('the comment %s reads as %s with examples %j', (comment, description, examples) => {
  expect(readComment(comment)).toEqual({ description, examples })
})

test.each([
  ['Lists payments, one at a time. More.', 'Lists payments, one at a time'],
  ['Stores 1.5 USDC: more', 'Stores 1.5 USDC'],
  ['no end', 'no end'],
])('the first sentence of %s is %s', (text, sentence) => {
  expect(firstSentence(text)).toBe(sentence)
})

test('a comment names reasons of errors, not warnings or values of enums', () => {
  expect(reasonsIn('INTERNAL, PENDING, INVALID_DATE (400); FILTER_MATCHES_NOTHING, INVALID_DATES.')).toEqual([
    'INTERNAL',
    'INVALID_DATE',
  ])
})
