/**
 * Checks answers of plain HTTP against the description of the API, strictly: an answer may hold no field that the description does not
 * have, and an error must have a reason that its operation names.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { describeApi } from '../../../src/api/openapi/describe-api.ts'
import type { ApiResponse, JsonSchema, Operation } from '../../../src/api/openapi/openapi-document.ts'
import { createPaymentsServices, type PaymentsCalls } from '../../../src/api/services/payments-services.ts'
import { createDemoService } from '../../../src/cli/serve/demo-service.ts'

export interface SentRequest {
  readonly method: string
  /** The path, with or without a query. */
  readonly target: string
}

export interface SeenAnswer {
  readonly status: number
  readonly header: (name: string) => string | null
  /** The names of all headers, in lower case. */
  readonly headerNames: readonly string[]
  /** The body of an answer that is JSON. */
  readonly text: string
}

/** Nothing is called. */
const description = describeApi({
  services: [
    ...createPaymentsServices({} as PaymentsCalls),
    createDemoService({ controls: () => Promise.reject(new Error('no demo runs')) }),
  ],
  release: '',
  version: '3.1',
})

const routes = Object.entries(description.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ method, pattern: patternOf(path), operation })),
)

/** Variables take one segment, and no verb. */
function patternOf(path: string): RegExp {
  const text = path.replaceAll(/[.*+?^$()|[\]\\]/g, String.raw`\$&`).replaceAll(/\{\w+\}/g, '[^/:]+')
  return new RegExp(`^${text}$`)
}

const formats = {
  'decimal-string': /^-?(?:0|[1-9]\d*)(?:\.\d{0,17}[1-9])?$/,
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z$/,
  int32: true,
  int64: true,
  uint64: true,
  double: true,
} as const

const ajv = new Ajv2020({ strict: false, formats })
const id = 'description'
ajv.addSchema({ $id: id, components: { schemas: closed(description.components.schemas) } })

/** Objects with named properties take no others. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  const copy = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, closed(each)]))
  return 'properties' in copy && copy['type'] === 'object' ? { ...copy, additionalProperties: false } : copy
}

const validators = new Map<string, ValidateFunction>()

function validatorOf(schema: JsonSchema): ValidateFunction {
  const key = JSON.stringify(schema)
  const before = validators.get(key)
  if (before !== undefined) return before
  const absolute = JSON.parse(key.replaceAll('"#/', `"${id}#/`)) as object
  const validate = ajv.compile(closed(absolute) as object)
  validators.set(key, validate)
  return validate
}

/**
 * Checks an answer, unless the description has no such operation.
 *
 * @throws Error that says what the description does not allow
 */
export function checkAnswer({ method, target }: SentRequest, answer: SeenAnswer): void {
  const operation = findOperation(method, target)
  if (operation === undefined) return
  const fault = faultOf(operation, answer)
  if (fault === undefined) return
  throw new Error(`${method} ${target.slice(0, 200)} answered ${answer.status} outside of the description: ${fault}`)
}

/** Checks a message of a stream of plain HTTP. */
export function checkStreamMessage(target: string, message: unknown): void {
  const answer = findOperation('GET', target)?.responses['200']
  const line = answer !== undefined && 'content' in answer ? answer.content?.['application/x-ndjson'] : undefined
  const schema = line?.schema?.contentSchema
  if (schema === undefined) return
  const fault = faultOfBody(schema, { result: message })
  if (fault !== undefined) throw new Error(`${target} sent a message outside of the description: ${fault}`)
}

function findOperation(method: string, target: string): Operation | undefined {
  const [path = ''] = target.split('?')
  return routes.find((route) => route.method === method.toLowerCase() && route.pattern.test(path))?.operation
}

/** Headers of HTTP itself, of CORS and of caches, which the description leaves out. */
const PLAIN_HEADERS = new Set(
  'connection content-encoding content-length content-type cache-control date keep-alive transfer-encoding vary x-accel-buffering x-content-type-options'.split(
    ' ',
  ),
)

function isPlain(name: string): boolean {
  return PLAIN_HEADERS.has(name) || name.startsWith('access-control-')
}

function faultOf({ responses }: Operation, { status, header, headerNames, text }: SeenAnswer): string | undefined {
  const named = responses[String(status)]
  if (named === undefined) return `no such status; body: ${text.slice(0, 300)}`
  const response = '$ref' in named ? (description.components.responses[nameIn(named.$ref)] as ApiResponse) : named
  const missing = Object.entries(response.headers ?? {}).find(
    ([name, { $ref }]) => description.components.headers[nameIn($ref)]?.required === true && header(name) === null,
  )
  if (missing !== undefined) return `the header ${missing[0]} is missing`
  const unnamed = headerNames.find((name) => !isPlain(name) && response.headers?.[name] === undefined)
  if (unnamed !== undefined) return `the header ${unnamed} is not described`
  if (response.content === undefined) return text === '' ? undefined : 'it has a body'
  const type = header('content-type')?.split(';', 1)[0] ?? 'no content type'
  const { schema } = response.content[type] ?? {}
  if (schema === undefined) return `the content type is ${type}`
  if (type !== 'application/json') return undefined
  const body: unknown = JSON.parse(text)
  return faultOfBody(schema, body) ?? faultOfReason(response, body)
}

function nameIn($ref: string): string {
  return $ref.slice($ref.lastIndexOf('/') + 1)
}

function faultOfBody(schema: JsonSchema, body: unknown): string | undefined {
  const validate = validatorOf(schema)
  if (validate(body)) return undefined
  return `${ajv.errorsText(validate.errors?.slice(0, 5))}; body: ${JSON.stringify(body).slice(0, 600)}`
}

function faultOfReason({ 'x-reasons': reasons }: ApiResponse, body: unknown): string | undefined {
  if (reasons === undefined) return undefined
  const { reason = '' } = (body as { details: readonly { reason?: string }[] }).details[0] ?? {}
  return reasons.includes(reason) ? undefined : `the reason ${reason} is not among those of the operation`
}
