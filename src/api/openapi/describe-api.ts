import type { DescField } from '@bufbuild/protobuf'
import { comments } from '../../../gen/payments/v1/comments.js'
import { bindingsOf, type HttpBinding } from '../../transcoding/http-rule.ts'
import { findTextReader } from '../../transcoding/messages/field-text.ts'
import { parseTemplate } from '../../transcoding/paths/template-parser.ts'
import type { ServedMethod, ServedService } from '../calls/served-method.ts'
import { httpRuleOf, isCommaSeparated, writtenPath } from '../messages/proto-options.ts'
import { answerContent, isExport, type OpenApiVersion } from './answer-content.ts'
import { everyAnswer, headers, headersOfMethod, parameters, securitySchemes, TICKET } from './common-parts.ts'
import {
  byStatus,
  createErrorResponses,
  errorSchemas,
  headersOf,
  reasonsOf,
  tableOfReasons,
} from './error-responses.ts'
import {
  createMessageSchemas,
  describeSymbol,
  inputSchema,
  type MessageSchemas,
  requestSchema,
} from './message-schemas.ts'
import {
  type ApiResponse,
  type Components,
  type HttpMethod,
  type JsonSchema,
  type Operation,
  type Parameter,
  type Reference,
  refTo,
} from './openapi-document.ts'
import { boundsOf, firstSentence } from './read-definitions.ts'

export interface DescribeApiOptions {
  readonly services: readonly ServedService[]
  /** Of this program. */
  readonly release: string
  readonly version: OpenApiVersion
}

const versions: Readonly<Record<OpenApiVersion, string>> = { '3.1': '3.1.1', '3.2': '3.2.0' }

const about = `Routes by which a wallet can pay a stored payment request, and search of payments across chains.

Amounts are decimal strings in human units beside their currency, never rounded. What is unknown is absent, never \`null\`. An unknown parameter, field or enum value is refused, so a misspelt filter never becomes an unfiltered search. Every error has one reason; \`x-reasons\` of /openapi.json is the table of all.

The same methods are served over gRPC, gRPC-Web and Connect on this port: \`x-rpc\` of an operation is its path there.`

/**
 * Describes the services as OpenAPI, from what serves them: descriptors with their comments, google.api.http, buf.validate, scopes, and the
 * table of reasons. The same program makes the same document.
 *
 * @throws Error when two operations would have one id, or a definition cannot be described
 */
export function describeApi({ services, release, version }: DescribeApiOptions) {
  const schemas = createMessageSchemas(comments)
  const errors = createErrorResponses()
  const terms = { schemas, errors, version }
  const operations = services.flatMap(({ methods }) =>
    methods.flatMap((method) =>
      namedBindings(method).map(({ operationId, binding, aliasOf }): PlacedOperation => {
        const operation = describeOperation(method, binding, terms)
        const alias = aliasOf === undefined ? {} : { 'x-alias-of': aliasOf }
        return {
          path: writtenPath(binding, method.desc),
          httpMethod: binding.httpMethod.toLowerCase() as HttpMethod,
          operation: { operationId, ...operation, ...alias },
        }
      }),
    ),
  )
  refuseDuplicates(operations.map(({ operation }) => operation.operationId))
  const ofErrors = errorSchemas(schemas)
  return {
    openapi: versions[version],
    info: { title: 'Waybill', version: release, description: about, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/', description: 'The process that serves this document.' }],
    tags: [
      ...services.map(({ service: { name, typeName } }) => ({ name, description: describeSymbol(schemas, typeName) })),
      { name: 'Health', description: 'Whether the process can answer. No key.' },
    ],
    paths: pathsOf([...operations, ...healthOperations]),
    components: {
      schemas: { ...ofErrors, ...schemas.all() },
      responses: errors.all,
      parameters,
      headers,
      securitySchemes,
    } as Components,
    'x-reasons': tableOfReasons(),
  }
}

export type OpenApiDocument = ReturnType<typeof describeApi>

interface PlacedOperation {
  readonly path: string
  readonly httpMethod: HttpMethod
  readonly operation: Operation
}

/** The bindings of a method with their ids. The first has the name of the method, others the version in their path: `searchPaymentsV1`. */
function namedBindings({ desc }: ServedMethod) {
  const rule = httpRuleOf(desc)
  if (rule === undefined) return []
  const first = desc.localName
  return bindingsOf(rule).map((binding, index) => {
    if (index === 0) return { operationId: first, binding, aliasOf: undefined }
    const version = /^\/(v\d+)\//.exec(binding.path)?.[1]?.toUpperCase() ?? `Path${index + 1}`
    return { operationId: `${first}${version}`, binding, aliasOf: first }
  })
}

function refuseDuplicates(ids: readonly string[]): void {
  const duplicate = ids.find((id, index) => ids.indexOf(id) !== index)
  if (duplicate !== undefined) throw new Error(`two operations would have the id ${duplicate}`)
}

function pathsOf(operations: readonly PlacedOperation[]) {
  const paths: Record<string, Partial<Record<HttpMethod, Operation>>> = {}
  for (const { path, httpMethod, operation } of operations) (paths[path] ??= {})[httpMethod] = operation
  return paths
}

const CLOCK_OFFSET: JsonSchema = {
  type: 'number',
  description:
    "How far the database's clock is ahead of this machine's; present only where it is more than five seconds.",
}

const healthOperations: readonly PlacedOperation[] = [
  health('/healthz', 'isAlive', 'Tells that the process is alive'),
  health('/readyz', 'isReady', 'Tells whether the database is reachable and migrated'),
]

function health(path: string, operationId: string, summary: string): PlacedOperation {
  const isReady = path === '/readyz'
  const answer = (description: string, status: string): ApiResponse => {
    const properties: Record<string, JsonSchema> = {
      status: { type: 'string', const: status },
      ...(isReady && { clockOffsetSeconds: CLOCK_OFFSET }),
    }
    return {
      description,
      headers: headersOf(['x-request-id', 'x-waybill-demo']),
      content: { 'application/json': { schema: { type: 'object', properties, required: ['status'] } } },
    }
  }
  return {
    path,
    httpMethod: 'get',
    operation: {
      operationId,
      tags: ['Health'],
      summary,
      description: `${summary}.`,
      parameters: [refTo('parameters', 'x-request-id')],
      responses: { 200: answer('Yes.', 'ok'), ...(isReady && { 503: answer('Not now.', 'unavailable') }) },
      security: [],
    },
  }
}

interface DescribeTerms {
  readonly schemas: MessageSchemas
  readonly errors: ReturnType<typeof createErrorResponses>
  readonly version: OpenApiVersion
}

/** Describes one binding of a method, but for its name among all operations. */
function describeOperation(
  method: ServedMethod,
  binding: HttpBinding,
  terms: DescribeTerms,
): Omit<Operation, 'operationId'> {
  const { desc, path } = method
  const inPath = parseTemplate(binding.path).variables.map(({ fieldPath }) => fieldPath)
  const description = describeSymbol(terms.schemas, `${desc.parent.typeName}.${desc.name}`)
  return {
    tags: [desc.parent.name],
    summary: firstSentence(description),
    description,
    parameters: parametersOf(method, binding, { ...terms, inPath }),
    ...bodyOf(method, binding, { ...terms, inPath }),
    responses: responsesOf(method, binding, terms),
    security: securityOf(method),
    'x-rpc': path,
    ...(method.isForPages && { 'x-publishable': true as const }),
  }
}

type WithPath = DescribeTerms & { readonly inPath: readonly string[] }

function parametersOf(
  method: ServedMethod,
  binding: HttpBinding,
  { schemas, inPath }: WithPath,
): readonly (Parameter | Reference)[] {
  const { fields } = method.desc.input
  const isTicket = ({ name }: DescField) => method.takesTicket && name === TICKET
  const inQuery = binding.body === '*' ? [] : fields.filter((field) => !inPath.includes(field.name) && !isTicket(field))
  const headers = [
    ...headersOfMethod(method.desc),
    ...(isCacheable(method, binding) ? (['if-none-match'] as const) : []),
    ...(method.scope === 'open' ? [] : (['x-account'] as const)),
    'x-request-id' as const,
  ]
  return [
    ...fields.filter(({ name }) => inPath.includes(name)).map((field) => describeParameter(field, 'path', schemas)),
    ...inQuery.flatMap((field) => describeInQuery(field, schemas)),
    ...headers.map((name) => refTo('parameters', name)),
  ]
}

/** The fields of a message are parameters of their own, `exclude.status`: as an object they would be sent as `status`, which is another filter. */
function describeInQuery(field: DescField, schemas: MessageSchemas): Parameter[] {
  if (field.fieldKind !== 'message' || findTextReader(field) !== undefined) {
    return [describeParameter(field, 'query', schemas)]
  }
  return field.message.fields.map((each) => {
    const parameter = describeParameter(each, 'query', schemas)
    return { ...parameter, name: `${field.jsonName}.${parameter.name}` }
  })
}

function describeParameter(field: DescField, place: 'path' | 'query', schemas: MessageSchemas): Parameter {
  const { description = '', ...schema } = inputSchema(schemas, field)
  const isRequired = place === 'path' || boundsOf(field).isRequired
  const common = { name: field.jsonName, in: place, ...(isRequired && { required: true }) }
  if (field.fieldKind !== 'list') return { ...common, description, schema }
  const takesCommas = isCommaSeparated(field)
  const several = takesCommas ? '\n\nSeveral values: separated by commas, or the parameter repeats.' : ''
  return { ...common, description: `${description}${several}`, style: 'form', explode: !takesCommas, schema }
}

function bodyOf(
  { desc }: ServedMethod,
  { body }: HttpBinding,
  { schemas, inPath }: WithPath,
): Pick<Operation, 'requestBody'> {
  if (body === '') return {}
  if (body !== '*') throw new Error(`${String(desc)}: the body is described only as the whole request`)
  const required = desc.input.fields.some((field) => !inPath.includes(field.name) && boundsOf(field).isRequired)
  const schema = requestSchema(schemas, desc.input, inPath)
  return { requestBody: { required, content: { 'application/json': { schema } } } }
}

function responsesOf(
  method: ServedMethod,
  binding: HttpBinding,
  { schemas, errors, version }: DescribeTerms,
): Operation['responses'] {
  const isCached = isCacheable(method, binding)
  const own = isExport(method.desc) ? (['content-disposition'] as const) : []
  const headers = headersOf([...everyAnswer, ...(isCached ? (['etag'] as const) : own)])
  const ofErrors = [...byStatus(reasonsOf(method, binding, schemas.comments))]
  return {
    200: { ...answerContent(method, schemas, version), headers },
    ...(isCached && { 304: { description: 'Nothing has changed since the answer of `if-none-match`.', headers } }),
    ...Object.fromEntries(ofErrors.map(([status, reasons]) => [status, errors.refer(status, reasons)])),
  }
}

/** Whether the answer has an entity tag. */
function isCacheable({ desc, readsOnly }: ServedMethod, { httpMethod }: HttpBinding): boolean {
  return readsOnly && httpMethod === 'GET' && desc.methodKind === 'unary'
}

function securityOf({ scope, takesTicket }: ServedMethod): Operation['security'] {
  if (scope === 'open') return []
  return [{ apiKey: scope === 'any' ? [] : [scope] }, ...(takesTicket ? [{ ticket: [] }] : [])]
}
