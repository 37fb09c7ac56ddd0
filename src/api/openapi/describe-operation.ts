import type { DescField } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import type { HttpBinding } from '../../transcoding/http-rule.ts'
import { findTextReader } from '../../transcoding/messages/field-text.ts'
import { parseTemplate } from '../../transcoding/paths/template-parser.ts'
import type { ServedMethod } from '../calls/served-method.ts'
import { isCommaSeparated } from '../messages/proto-options.ts'
import { answerContent, isExport, type OpenApiVersion } from './answer-content.ts'
import { everyAnswer, headersOfMethod, TICKET } from './common-parts.ts'
import { byStatus, errorResponse, headersOf } from './error-responses.ts'
import { boundsOf } from './field-rules.ts'
import { describeSymbol, inputSchema, type MessageSchemas, requestSchema } from './message-schemas.ts'
import { type ApiResponse, type Operation, type Parameter, type Reference, refTo } from './openapi-document.ts'
import { reasonsOf } from './operation-reasons.ts'
import { firstSentence } from './read-comment.ts'

export interface DescribeTerms {
  readonly schemas: MessageSchemas
  readonly version: OpenApiVersion
}

/** Describes one binding of a method, but for its name among all operations. */
export function describeOperation(
  method: ServedMethod,
  binding: HttpBinding,
  terms: DescribeTerms,
): Omit<Operation, 'operationId'> {
  const { desc, path } = method
  const inPath = parseTemplate(binding.path).variables.map(({ fieldPath }) => fieldPath)
  const description = describeSymbol(terms.schemas, nameOf(method))
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

function nameOf({ desc }: ServedMethod): string {
  return `${desc.parent.typeName}.${desc.name}`
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
    ...(isCacheable(method, binding) ? (['IfNoneMatch'] as const) : []),
    ...(method.scope === 'open' ? [] : (['Account'] as const)),
    'RequestId' as const,
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
  { schemas, version }: DescribeTerms,
): Readonly<Record<string, ApiResponse>> {
  const isCached = isCacheable(method, binding)
  const own = isExport(method.desc) ? (['Disposition'] as const) : []
  const headers = headersOf([...everyAnswer, ...(isCached ? (['ETag'] as const) : own)])
  const errors = [...byStatus(reasonsOf(method, binding, schemas.comments))]
  return {
    200: { ...answerContent(method, schemas, version), headers },
    ...(isCached && { 304: { description: 'Nothing has changed since the answer of `if-none-match`.', headers } }),
    ...(Object.fromEntries(errors.map(([status, names]) => [String(status), errorResponse(status, names)])) as Record<
      string,
      ApiResponse
    >),
  }
}

/** Whether the answer has an entity tag. */
function isCacheable({ desc }: ServedMethod, { httpMethod }: HttpBinding): boolean {
  const readsOnly = desc.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
  return readsOnly && httpMethod === 'GET' && desc.methodKind === 'unary'
}

function securityOf({ scope, takesTicket }: ServedMethod): Operation['security'] {
  if (scope === 'open') return []
  return [{ apiKey: [scope] }, ...(takesTicket ? [{ ticket: [] }] : [])]
}
