import type { OpenApiDocument } from '../../src/api/openapi/describe-api.ts'
import type { Json, JsonSchema, Operation, Parameter, Reference } from '../../src/api/openapi/openapi-document.ts'

/** An operation and where it is called. */
export interface PlacedOperation {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

/** Follows references of a document. */
export function createResolver({ components }: OpenApiDocument) {
  function find(ref: string): unknown {
    const [kind = '', name = ''] = ref.split('/').slice(-2)
    return (components as unknown as Record<string, Record<string, unknown>>)[kind]?.[name]
  }
  return {
    /** The schema, or the one that it refers to; what stands beside the reference wins. */
    schema(schema: JsonSchema): JsonSchema {
      if (schema.$ref === undefined) return schema
      const { $ref, ...beside } = schema
      return { ...(find($ref) as JsonSchema), ...beside }
    },
    part<T extends object>(part: T | Reference): T {
      return '$ref' in part ? (find(part.$ref) as T) : part
    },
  }
}

export type Resolver = ReturnType<typeof createResolver>

const MAX_SAMPLE_DEPTH = 6

/** An example of a value, of the examples of its fields. Fields that may be absent and have no example are left out, but for objects at the top. */
export function sampleOf(schema: JsonSchema, resolve: Resolver, depth = 0): Json | undefined {
  const found = resolve.schema(schema)
  const [example] = found.examples ?? []
  if (example !== undefined) return example
  if (found.const !== undefined) return found.const
  if (found.enum !== undefined) return found.enum[0]
  if (depth > MAX_SAMPLE_DEPTH) return undefined
  switch (typeof found.type === 'string' ? found.type : found.type?.[0]) {
    case 'object':
      return sampleObject(found, resolve, depth)
    case 'array': {
      const element = found.items && sampleOf(found.items, resolve, depth + 1)
      return element === undefined ? [] : [element]
    }
    case 'string':
      return sampleText(found)
    case 'integer':
    case 'number':
      return 0
    case 'boolean':
      return true
    case undefined:
      return found.anyOf?.[0] && sampleOf(found.anyOf[0], resolve, depth + 1)
  }
}

function sampleObject(schema: JsonSchema, resolve: Resolver, depth: number): Json {
  const entries = Object.entries(schema.properties ?? {}).flatMap(([name, property]): [string, Json][] => {
    const isMain = depth === 0 && resolve.schema(property).type === 'object'
    const isThere = schema.required?.includes(name) === true || property.examples !== undefined || isMain
    if (!isThere && schema.maxProperties !== 1) return []
    const value = sampleOf(property, resolve, depth + 1)
    return value === undefined ? [] : [[name, value]]
  })
  return Object.fromEntries(schema.maxProperties === 1 ? entries.slice(0, 1) : entries)
}

function sampleText({ format, pattern }: JsonSchema): string {
  if (format === 'date-time') return '2026-03-01T12:00:05Z'
  if (format === 'decimal-string') return '1.5'
  return pattern?.includes('0-9') === true ? '21000000' : '…'
}

/** A call by curl that can be copied. It holds what must be sent, and the first filters where nothing must. */
export function curlOf({ method, path: template, operation }: PlacedOperation, resolve: Resolver): string {
  const parameters = operation.parameters.map((parameter) => resolve.part<Parameter>(parameter))
  const text = (parameter: Parameter) => textOf(sampleOf(parameter.schema, resolve))
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const parameter = parameters.find((each) => each.name === name)
    return parameter === undefined ? '' : encodeURIComponent(text(parameter))
  })
  const inQuery = parameters.filter((parameter) => parameter.in === 'query' && isShown(parameter, parameters))
  const query = inQuery.map(
    (parameter) => `${parameter.name}=${encodeURIComponent(text(parameter)).replaceAll('%2C', ',')}`,
  )
  const url = `$WAYBILL${path}${query.length === 0 ? '' : `?${query.join('&')}`}`
  const body = operation.requestBody?.content['application/json']?.schema
  const lines = [
    `curl -s${isStream(operation) ? 'N' : ''}${method === 'GET' ? '' : ` -X ${method}`} "${url}"`,
    ...(operation.security.length === 0 ? [] : ['-H "x-api-key: $WAYBILL_KEY"']),
    ...(body === undefined
      ? []
      : ["-H 'content-type: application/json'", `-d '${JSON.stringify(bodySample(body, resolve))}'`]),
  ]
  return lines.join(' \\\n  ')
}

/** Required parameters; where there are none, the first of the filters that most calls use. */
function isShown({ name, required }: Parameter, all: readonly Parameter[]): boolean {
  if (required === true) return true
  return !all.some((each) => each.required === true) && ['status', 'network', 'groupBy'].includes(name)
}

function bodySample(schema: JsonSchema, resolve: Resolver): Json {
  const { properties = {}, required = [] } = resolve.schema(schema)
  return Object.fromEntries(required.map((name) => [name, sampleOf(properties[name] ?? {}, resolve) ?? '']))
}

function textOf(value: Json | undefined): string {
  if (Array.isArray(value)) return value.map(textOf).join(',')
  return typeof value === 'string' ? value : JSON.stringify(value ?? '')
}

/** Whether the answer of an operation is a stream. */
export function isStream({ responses }: Operation): boolean {
  const answer = responses['200']
  return answer !== undefined && 'content' in answer && answer.content?.['application/x-ndjson'] !== undefined
}
