/** The reference of the API, as Markdown. */
import type { OpenApiDocument } from '../../src/api/openapi/describe-api.ts'
import type { ApiResponse, JsonSchema, Operation, Parameter } from '../../src/api/openapi/openapi-document.ts'
import type { MarkdownDocument } from './read-documents.ts'
import { createResolver, curlOf, isStream, type PlacedOperation, type Resolver, sampleOf } from './sample.ts'

const SCHEMAS = '/docs/api/schemas'

interface Terms {
  readonly resolve: Resolver
  /** The text of a comment, with names of reasons as code. */
  readonly comment: (text: string) => string
}

/** A page for each service, and one of all messages and enums. */
export function writeApiPages(document: OpenApiDocument): readonly MarkdownDocument[] {
  const terms = { resolve: createResolver(document), comment: markReasons(document) }
  const placed = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const services = document.tags.map(({ name, description }) => {
    const words = name.replace(/Service$/, '').split(/(?=[A-Z])/)
    const title = words.map((word, index) => (index === 0 ? word : word.toLowerCase())).join(' ')
    const own = placed.filter(({ operation }) => operation.tags.includes(name))
    const main = own.filter(({ operation }) => operation['x-alias-of'] === undefined)
    const operations = main.map(({ method, path, operation }) => ({
      id: operation.operationId,
      call: `${method} ${path}`,
      summary: operation.summary,
    }))
    const parts = main.map((each) => writeOperation(each, own, terms))
    const page = pageOf(`/docs/api/${words.join('-').toLowerCase()}`, title, [terms.comment(description), ...parts])
    return { ...page, summary: description.split('\n', 1)[0] ?? '', operations }
  })
  return [...services, schemasPage(document, terms)]
}

export function markReasons({ 'x-reasons': reasons }: OpenApiDocument) {
  return (text: string) =>
    text.replaceAll(/`[^`]*`|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b/g, (word) =>
      Object.hasOwn(reasons, word) ? `\`${word}\`` : word,
    )
}

function pageOf(url: string, title: string, parts: readonly string[]): MarkdownDocument {
  const markdown = paragraphs([`# ${title}`, ...parts])
  return { path: `${url.slice(1)}.md`, url, source: `${url}.md`, section: 'API', title, summary: '', markdown }
}

const paragraphs = (parts: readonly string[]) => parts.filter((part) => part !== '').join('\n\n')

function schemasPage({ components }: OpenApiDocument, terms: Terms): MarkdownDocument {
  const summary = 'Every message and enum of the API.'
  const sections = Object.entries(components.schemas).map(([name, schema]) =>
    paragraphs([`## ${name}`, terms.comment(schema.description ?? ''), writeFields(fieldsOf(schema, 'always'), terms)]),
  )
  const lead = `${summary} A field marked always stands in every answer; any other is absent where it is unknown.`
  return { ...pageOf(SCHEMAS, 'Schemas', [lead, ...sections]), summary }
}

/** What an operation does, how it is asked, and what it answers. */
function writeOperation(placed: PlacedOperation, all: readonly PlacedOperation[], terms: Terms): string {
  const { method, path, operation } = placed
  const aliases = all.filter((each) => each.operation['x-alias-of'] === operation.operationId)
  const answer = terms.resolve.part<ApiResponse>(operation.responses['200'] ?? { description: '' })
  const message = messageOf(answer)
  return paragraphs([
    `## ${operation.operationId}`,
    `**${method}** \`${path}\``,
    terms.comment(operation.description),
    writeAccess(operation, aliases),
    fence('sh', curlOf(placed, terms.resolve)),
    writeSample(operation, answer, terms),
    ...writeInput(operation, terms),
    '### Answer',
    terms.comment(answer.description),
    `${codes(Object.keys(answer.content ?? {}))}${message?.$ref === undefined ? '' : `: ${typeOf(message)}`}`,
    message === undefined ? '' : writeFields(fieldsOf(terms.resolve.schema(message), 'always'), terms),
    '### Errors',
    writeErrors(operation, terms),
  ])
}

const fence = (language: string, code: string) => `\`\`\`${language}\n${code}\n\`\`\``
const codes = (values: readonly string[]) => values.map((value) => `\`${value}\``).join(', ')

function writeSample(operation: Operation, { content }: ApiResponse, { resolve }: Terms): string {
  const message = messageOf({ description: '', ...(content && { content }) })
  const sample = message && sampleOf(message, resolve)
  if (sample === undefined) return ''
  const isLine = isStream(operation) && content?.['text/event-stream'] !== undefined
  return fence('json', isLine ? JSON.stringify({ result: sample }) : JSON.stringify(sample, null, 2))
}

function writeAccess(operation: Operation, aliases: readonly PlacedOperation[]): string {
  const scopes = operation.security[0]?.apiKey
  const key = scopes?.[0] === undefined ? 'Any secret key' : `Key with the scope \`${scopes[0]}\``
  const others = [
    operation.security.length > 1 && ', or a ticket',
    operation['x-publishable'] && ', or a publishable key',
  ]
  const rpc = operation['x-rpc']
  return [
    scopes === undefined ? 'No key.' : `${key}${others.filter(Boolean).join('')}.`,
    ...aliases.map(({ method, path }) => `Also \`${method} ${path}\`.`),
    ...(rpc === undefined ? [] : [`gRPC, gRPC-Web, Connect: \`${rpc}\`.`]),
  ].join(' ')
}

function writeInput({ parameters, requestBody }: Operation, terms: Terms): readonly string[] {
  const all = parameters.map((parameter) => terms.resolve.part<Parameter>(parameter))
  const body = requestBody?.content['application/json']?.schema
  const listed = (title: string, fields: readonly Field[]) =>
    fields.length === 0 ? '' : `### ${title}\n\n${writeFields(fields, terms)}`
  const views = (isHeader: boolean) =>
    all
      .filter((parameter) => (parameter.in === 'header') === isHeader)
      .map(({ in: place, required, ...field }) => ({
        ...field,
        marks: [...(place === 'path' ? ['path'] : []), ...(required === true ? ['required'] : [])],
      }))
  return [
    listed('Parameters', views(false)),
    body === undefined ? '' : listed('Body', fieldsOf(terms.resolve.schema(body), 'required')),
    listed('Headers', views(true)),
  ]
}

/** The message of an answer, or of each line of a stream. */
function messageOf({ content = {} }: ApiResponse): JsonSchema | undefined {
  const plain = content['application/json']?.schema
  const line = content['application/x-ndjson']?.schema?.contentSchema
  return plain ?? line?.properties?.['result'] ?? line?.anyOf?.[0]
}

/** Reasons by status; their messages and remedies stand on a page of their own. */
function writeErrors({ responses }: Operation, { resolve, comment }: Terms): string {
  const lines = Object.entries(responses).flatMap(([status, response]) => {
    const { 'x-reasons': reasons, description } = resolve.part<ApiResponse>(response)
    if (reasons === undefined) return []
    return [`- **${status}** ${comment(description.split('\n', 1)[0] ?? '')} ${codes(reasons)}`]
  })
  return [...lines, '- What each means, and what helps: [reasons](/docs/reference/reasons.md)'].join('\n')
}

/** A field or a parameter. */
interface Field {
  readonly name: string
  readonly schema: JsonSchema
  readonly description?: string | undefined
  /** `required`, `path`: beside the type. */
  readonly marks: readonly string[]
}

/** The fields of an object's schema, those marked that are always there. */
function fieldsOf(schema: JsonSchema, mark: string): readonly Field[] {
  return Object.entries(schema.properties ?? {}).map(([name, property]) => ({
    name,
    schema: property,
    marks: schema.required?.includes(name) === true ? [mark] : [],
  }))
}

function writeFields(fields: readonly Field[], { resolve, comment }: Terms): string {
  return fields
    .map(({ name, schema, description = schema.description, marks }) => {
      const { enum: values } = resolve.schema(schema.items ?? schema)
      const lines = [
        `- \`${name}\` *${[typeOf(schema), ...marks].join(', ')}*`,
        comment(description ?? ''),
        values === undefined ? '' : `One of ${codes(values)}.`,
        boundsOf(schema),
      ]
      return paragraphs(lines).replaceAll(/\n(?=[^\n])/g, '\n  ')
    })
    .join('\n')
}

/** The type of a schema, with links to the schemas that it names. */
function typeOf({ $ref, type, items, anyOf, additionalProperties, format = '' }: JsonSchema): string {
  if ($ref !== undefined) {
    const name = $ref.split('/').at(-1) ?? ''
    return `[${name}](${SCHEMAS}.md#${name})`
  }
  if (type === 'array') return `list of ${typeOf(items ?? {})}`
  if (anyOf !== undefined) return anyOf.map(typeOf).join(' or ')
  if (type === 'object' && typeof additionalProperties === 'object') return `map of ${typeOf(additionalProperties)}`
  const shown = formats[format] ?? format
  return `${(typeof type === 'string' ? type : type?.[0]) ?? 'value'}${shown === '' ? '' : ` (${shown})`}`
}

const formats: Readonly<Record<string, string>> = {
  double: '',
  int32: '',
  'date-time': 'time',
  uint64: '64-bit integer',
  int64: '64-bit integer',
}

/** Lengths and bounds in words, and examples. */
function boundsOf(schema: JsonSchema): string {
  const { minLength = 0, maxLength, minimum, maximum, maxItems, pattern, items, format, examples = [] } = schema
  const words = [
    minLength > 1 && `at least ${minLength} characters`,
    maxLength !== undefined && `at most ${maxLength} characters`,
    minimum !== undefined && `at least ${minimum}`,
    maximum !== undefined && `at most ${maximum}`,
    maxItems !== undefined && `at most ${maxItems} values`,
    items?.maxLength !== undefined && `each at most ${items.maxLength} characters`,
    pattern !== undefined && format === undefined && `matches \`${pattern}\``,
  ].filter((word) => word !== false)
  const bounds = words.join(', ')
  return [
    ...(bounds === '' ? [] : [`${bounds.charAt(0).toUpperCase()}${bounds.slice(1)}.`]),
    ...(examples.length === 0 ? [] : [`Example: ${codes(examples.map((each) => JSON.stringify(each)))}`]),
  ].join(' ')
}
