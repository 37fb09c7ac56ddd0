import type { JsonSchema } from '../../api/openapi/openapi-document.ts'
import { type Html, html } from './html.ts'
import type { Resolver } from './sample.ts'

/** What the pages of the reference share. */
export interface RenderTerms {
  readonly resolve: Resolver
  /** Renders the text of a comment. */
  readonly comment: (text: string) => Html
}

/** A field or a parameter. */
export interface FieldView {
  readonly name: string
  readonly schema: JsonSchema
  readonly description?: string | undefined
  /** `required`, `path`: beside the type. */
  readonly marks: readonly string[]
}

/** The fields of an object, one below the other. */
export function renderFields(fields: readonly FieldView[], terms: RenderTerms): Html {
  const rows = fields.map(({ name, schema, description = schema.description, marks }) => {
    const { enum: values } = terms.resolve.schema(schema.items ?? schema)
    return html`<div class="field">
<dt><code>${name}</code> <span class="type">${typeOf(schema)}</span>${marks.map((mark) => html` <span class="mark ${mark}">${mark}</span>`)}</dt>
<dd>${description !== undefined && terms.comment(description)}${values && html`<p class="values">One of ${joined(values)}.</p>`}${boundsOf(schema)}</dd>
</div>
`
  })
  return html`<dl class="fields">
${rows}</dl>
`
}

/** The fields of an object's schema, always-present ones marked. */
export function fieldsOf(schema: JsonSchema, mark: string): readonly FieldView[] {
  return Object.entries(schema.properties ?? {}).map(([name, property]) => ({
    name,
    schema: property,
    marks: schema.required?.includes(name) === true ? [mark] : [],
  }))
}

/** Codes in a row. */
export function joined(values: readonly string[]): readonly Html[] {
  return values.map((value, index) => html`${index === 0 ? '' : ', '}<code>${value}</code>`)
}

/** The type of a schema, with links to the schemas that it names. */
export function typeOf(schema: JsonSchema): Html {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? ''
    return html`<a href="/docs/api/schemas#${name}">${name}</a>`
  }
  if (schema.type === 'array') return html`list of ${typeOf(schema.items ?? {})}`
  if (schema.anyOf !== undefined) {
    return html`${schema.anyOf.map((each, index) => html`${index === 0 ? '' : ' or '}${typeOf(each)}`)}`
  }
  if (schema.type === 'object' && typeof schema.additionalProperties === 'object') {
    return html`map of ${typeOf(schema.additionalProperties)}`
  }
  const format = schema.format === undefined ? '' : (formats[schema.format] ?? ` (${schema.format})`)
  return html`${(typeof schema.type === 'string' ? schema.type : schema.type?.[0]) ?? 'value'}${format}`
}

const formats: Readonly<Record<string, string>> = {
  double: '',
  int32: '',
  'date-time': ' (time)',
  uint64: ' (64-bit integer)',
  int64: ' (64-bit integer)',
}

/** Lengths and bounds in words. */
function boundsOf(schema: JsonSchema): Html | undefined {
  const { minLength, maxLength, minimum, maximum, maxItems, pattern, items } = schema
  const words = [
    minLength !== undefined && minLength > 1 ? `at least ${minLength} characters` : '',
    maxLength === undefined ? '' : `at most ${maxLength} characters`,
    minimum === undefined ? '' : `at least ${minimum}`,
    maximum === undefined ? '' : `at most ${maximum}`,
    maxItems === undefined ? '' : `at most ${maxItems} values`,
    items?.maxLength === undefined ? '' : `each at most ${items.maxLength} characters`,
    pattern === undefined || schema.format !== undefined ? '' : `matches ${pattern}`,
  ].filter((word) => word !== '')
  const says = words.length === 0 ? '' : sentence(words.join(', '))
  const examples = joined((schema.examples ?? []).map((each) => JSON.stringify(each)))
  if (says === '' && examples.length === 0) return undefined
  const example = examples.length > 0 && html`${says !== '' && ' '}Example: ${examples}`
  return html`<p class="bounds">${says}${example}</p>`
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
