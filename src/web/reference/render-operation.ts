import type {
  ApiResponse,
  JsonSchema,
  OpenApiDocument,
  Operation,
  Parameter,
} from '../../api/openapi/openapi-document.ts'
import { type Html, html } from './html.ts'
import { renderLine } from './render-markdown.ts'
import { type FieldView, fieldsOf, joined, type RenderTerms, renderFields, typeOf } from './render-schema.ts'
import { curlOf, isStream, sampleOf } from './sample.ts'

/** An operation and where it is called. */
export interface PlacedOperation {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

export interface OperationTerms extends RenderTerms {
  readonly reasons: OpenApiDocument['x-reasons']
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
  terms: OperationTerms,
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
${rpc !== undefined && html`<li>gRPC, gRPC-Web, Connect: <code>${breakable(rpc)}</code></li>`}
</ul>`
}

function renderInput({ parameters, requestBody }: Operation, terms: RenderTerms): Html {
  const all = parameters.map((parameter) => terms.resolve.part<Parameter>(parameter))
  const inUrl = all.filter((parameter) => parameter.in !== 'header')
  const headers = all.filter((parameter) => parameter.in === 'header')
  const body = requestBody?.content['application/json']?.schema
  const fields = (shown: readonly Parameter[]) => renderFields(shown.map(viewOf), terms)
  return html`${
    inUrl.length > 0 &&
    html`<h3>Parameters</h3>
${fields(inUrl)}`
  }${body && renderBody(body, terms)}${
    headers.length > 0 &&
    html`<details><summary>Headers of the call</summary>
${fields(headers)}</details>
`
  }`
}

function viewOf({ name, schema, description, required, in: place }: Parameter): FieldView {
  const marks = [place === 'path' && 'path', required === true && 'required'].filter((mark) => mark !== false)
  return { name, schema, description, marks }
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
  const types = joined(Object.keys(answer.content ?? {}))
  return html`<h3>Answer</h3>
${terms.comment(answer.description)}
<p class="types">${types}${schema?.$ref !== undefined && html`: ${typeOf(schema)}`}</p>
${schema && renderFields(fieldsOf(terms.resolve.schema(schema), 'always'), terms)}`
}

/** The message of an answer, or of each line of a stream. */
function messageOf({ content = {} }: ApiResponse): JsonSchema | undefined {
  const plain = content['application/json']?.schema
  const line = content['application/x-ndjson']?.schema?.contentSchema
  return plain ?? line?.properties?.['result'] ?? line?.anyOf?.[0]
}

function renderErrors({ responses }: Operation, terms: OperationTerms): Html | undefined {
  const errors = Object.entries(responses).flatMap(([status, response]) => {
    const { 'x-reasons': reasons, description } = terms.resolve.part<ApiResponse>(response)
    return reasons === undefined ? [] : [renderError(status, description.split('\n', 1)[0] ?? '', { reasons, terms })]
  })
  return errors.length === 0
    ? undefined
    : html`<h3>Errors</h3>
${errors}`
}

function renderError(
  status: string,
  title: string,
  { reasons, terms }: { reasons: readonly string[]; terms: OperationTerms },
): Html {
  const lines = reasons.map((name) => {
    const { message = '', remedy = '' } = terms.reasons[name] ?? {}
    return html`<dt><code>${name}</code></dt><dd>${message}${remedy !== '' && `; ${remedy}`}</dd>
`
  })
  return html`<details class="errors"><summary><code>${status}</code> ${renderLine(title)}</summary>
<dl class="reasons">
${lines}</dl></details>
`
}

function renderExamples(placed: PlacedOperation, { resolve }: RenderTerms): Html {
  const { operation } = placed
  const answer = resolve.part<ApiResponse>(operation.responses['200'] ?? { description: '' })
  const schema = messageOf(answer)
  const sample = schema && sampleOf(schema, resolve)
  const isLines = isStream(operation) && answer.content?.['text/event-stream'] !== undefined
  const text = isLines ? JSON.stringify({ result: sample }) : JSON.stringify(sample, null, 2)
  return html`${renderExample('curl', curlOf(operation, placed, resolve))}
${sample !== undefined && renderExample(isLines ? 'A line' : '200', text)}`
}

/** Code that can be copied. */
export function renderExample(title: string, code: string): Html {
  return html`<figure><figcaption>${title}</figcaption><pre tabindex="0"><code>${code}</code></pre></figure>`
}
