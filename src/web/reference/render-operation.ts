import type {
  ApiResponse,
  JsonSchema,
  OpenApiDocument,
  Operation,
  Parameter,
} from '../../api/openapi/openapi-document.ts'
import { type Html, html } from './html.ts'
import { renderLine } from './render-markdown.ts'
import { type FieldView, fieldsOf, type RenderTerms, renderFields, typeOf } from './render-schema.ts'
import { curlOf, isStream, sampleOf } from './sample.ts'

/** An operation and where it is called. */
export interface PlacedOperation {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

/** The operations of a document in its order. */
export function operationsOf({ paths }: OpenApiDocument): readonly PlacedOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}

/** One operation: what it does, how it is asked, and what it answers. */
export function renderOperation(
  placed: PlacedOperation,
  aliases: readonly PlacedOperation[],
  terms: RenderTerms & { readonly reasons: OpenApiDocument['x-reasons'] },
): Html {
  const { method, path, operation } = placed
  const { operationId, description } = operation
  return html`<section class="operation" id="${operationId}" aria-labelledby="${operationId}-title">
<div class="says">
<h2 id="${operationId}-title">${operationId} <a class="anchor" href="#${operationId}" aria-label="Link to this operation">#</a></h2>
<p class="endpoint"><span class="method ${method.toLowerCase()}">${method}</span> <code>${breakable(path)}</code></p>
${terms.comment(description)}
${renderAccess(operation, aliases)}
${renderInput(operation, terms)}
${renderAnswer(operation, terms)}
${renderErrors(operation, terms)}
</div>
<div class="shows">
${renderExamples(placed, terms)}
</div>
</section>
`
}

/** A long path may break before its slashes. */
function breakable(path: string): readonly Html[] {
  return path.split(/(?=[/:])/).map((part, index) => html`${index === 0 ? undefined : html`<wbr>`}${part}`)
}

function renderAccess(operation: Operation, aliases: readonly PlacedOperation[]): Html {
  const scope = operation.security.flatMap((scheme) => scheme.apiKey ?? [])[0]
  const rpc = operation['x-rpc']
  return html`<ul class="facts">
<li>${scope === undefined ? 'No key.' : html`Key with the scope <code>${scope}</code>${operation.security.length > 1 ? ', or a ticket' : ''}${operation['x-publishable'] ? ', or a publishable key' : ''}.`}</li>
${aliases.map((alias) => html`<li>Also <code>${alias.method} ${breakable(alias.path)}</code>.</li>`)}
${rpc === undefined ? undefined : html`<li>gRPC, gRPC-Web, Connect: <code>${breakable(rpc)}</code></li>`}
</ul>`
}

function renderInput({ parameters, requestBody }: Operation, terms: RenderTerms): Html {
  const all = parameters.map((parameter) => terms.resolve.part<Parameter>(parameter))
  const view = ({ name, schema, description, required }: Parameter, place?: string): FieldView => ({
    name,
    schema,
    description,
    marks: [...(place === undefined ? [] : [place]), ...(required === true ? ['required'] : [])],
  })
  const inUrl = all.filter((parameter) => parameter.in !== 'header')
  const headers = all.filter((parameter) => parameter.in === 'header')
  const body = requestBody?.content['application/json']?.schema
  return html`${
    inUrl.length === 0
      ? undefined
      : html`<h3>Parameters</h3>
${renderFields(
  inUrl.map((parameter) => view(parameter, parameter.in === 'path' ? 'path' : undefined)),
  terms,
)}`
  }${body === undefined ? undefined : renderBody(body, terms)}${
    headers.length === 0
      ? undefined
      : html`<details><summary>Headers of the call</summary>
${renderFields(
  headers.map((parameter) => view(parameter)),
  terms,
)}</details>
`
  }`
}

function renderBody(body: JsonSchema, terms: RenderTerms): Html {
  const fields = fieldsOf(terms.resolve.schema(body), 'required')
  if (fields.length === 0) return html`<h3>Body</h3><p>None, or <code>{}</code>.</p>`
  return html`<h3>Body</h3>
${renderFields(fields, terms)}`
}

function renderAnswer(operation: Operation, terms: RenderTerms): Html {
  const answer = terms.resolve.part<ApiResponse>(operation.responses['200'] ?? { description: '' })
  const schema = messageOf(answer)
  const types = Object.keys(answer.content ?? {})
  return html`<h3>Answer</h3>
${terms.comment(answer.description)}
<p class="types">${types.map((type, index) => html`${index === 0 ? '' : ', '}<code>${type}</code>`)}${
    schema?.$ref === undefined ? undefined : html`: ${typeOf(schema)}`
  }</p>
${schema === undefined ? undefined : renderFields(fieldsOf(terms.resolve.schema(schema), 'always'), terms)}`
}

/** The message of an answer, or of each line of a stream. */
function messageOf({ content = {} }: ApiResponse): JsonSchema | undefined {
  const plain = content['application/json']?.schema
  const line = content['application/x-ndjson']?.schema?.contentSchema
  return plain ?? line?.properties?.['result'] ?? line?.anyOf?.[0]
}

function renderErrors(
  { responses }: Operation,
  terms: RenderTerms & { readonly reasons: OpenApiDocument['x-reasons'] },
): Html | undefined {
  const errors = Object.entries(responses).flatMap(([status, response]) => {
    const { 'x-reasons': reasons, description } = terms.resolve.part<ApiResponse>(response)
    return reasons === undefined ? [] : [{ status, reasons, title: description.split('\n', 1)[0] ?? '' }]
  })
  if (errors.length === 0) return undefined
  return html`<h3>Errors</h3>
${errors.map(
  ({
    status,
    reasons,
    title,
  }) => html`<details class="errors"><summary><code>${status}</code> ${renderLine(title)}</summary>
<dl class="reasons">
${reasons.map((name) => {
  const { message = '', remedy = '' } = terms.reasons[name] ?? {}
  return html`<dt><code>${name}</code></dt><dd>${message}${remedy === '' ? '' : `; ${remedy}`}</dd>
`
})}</dl></details>
`,
)}`
}

function renderExamples(placed: PlacedOperation, { resolve }: RenderTerms): Html {
  const { operation } = placed
  const answer = resolve.part<ApiResponse>(operation.responses['200'] ?? { description: '' })
  const schema = messageOf(answer)
  const sample = schema === undefined ? undefined : sampleOf(schema, resolve)
  const isLines = isStream(operation) && answer.content?.['text/event-stream'] !== undefined
  const text =
    sample === undefined ? undefined : isLines ? JSON.stringify({ result: sample }) : JSON.stringify(sample, null, 2)
  return html`<figure><figcaption>curl</figcaption><pre tabindex="0"><code>${curlOf(operation, placed, resolve)}</code></pre></figure>
${
  text === undefined
    ? undefined
    : html`<figure><figcaption>${isLines ? 'A line' : '200'}</figcaption><pre tabindex="0"><code>${text}</code></pre></figure>`
}`
}
