import { type DescEnum, type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt'
import { type Json, type JsonSchema, refTo } from './openapi-document.ts'
import { boundsOf, readComment } from './read-definitions.ts'

/** Comments of proto/ by full names: `payments.v1.Payment.status`. */
export type Comments = Readonly<Record<string, string>>

export type MessageSchemas = ReturnType<typeof createMessageSchemas>

/** Collects the schemas of messages and enums as they are asked for, each by one name. */
export function createMessageSchemas(comments: Comments) {
  const components = new Map<string, JsonSchema>()
  const owners = new Map<string, string>()
  return {
    comments,
    /**
     * Adds a schema to the components, unless it stands there, and refers to it. A message may hold itself.
     *
     * @throws Error when two types would have one name
     */
    refer(typeName: string, make: () => JsonSchema): JsonSchema {
      const name = componentName(typeName)
      const owner = owners.get(name)
      if (owner !== undefined && owner !== typeName) throw new Error(`${typeName} and ${owner} have one name, ${name}`)
      if (owner === undefined) {
        owners.set(name, typeName)
        components.set(name, make())
      }
      return refTo('schemas', name)
    },
    /** All that were referred to, by name. */
    all: (): Readonly<Record<string, JsonSchema>> =>
      Object.fromEntries([...components].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  }
}

/** The comment of a message, method or service, without examples. */
export function describeSymbol({ comments }: MessageSchemas, name: string): string {
  return readComment(comments[name] ?? '').description
}

/** The schema of an answer: a field without presence always stands in it, any other may be absent. */
export function answerSchema(schemas: MessageSchemas, desc: DescMessage): JsonSchema {
  return schemas.refer(desc.typeName, () => inlineAnswerSchema(schemas, desc))
}

/**
 * The schema of an answer by itself, in no component.
 *
 * @param first - properties before its own, as google.protobuf.Any has
 */
export function inlineAnswerSchema(
  schemas: MessageSchemas,
  desc: DescMessage,
  first: Readonly<Record<string, JsonSchema>> = {},
): JsonSchema {
  const always = desc.fields.filter(isAlwaysPresent).map(({ jsonName }) => jsonName)
  const isOneof = desc.fields.length > 0 && desc.fields.every(({ oneof }) => oneof !== undefined)
  const properties = desc.fields.map((field): [string, JsonSchema] => {
    const type = typeOfField(schemas, field, (message) => answerSchema(schemas, message))
    return [field.jsonName, withComment(schemas, field, type)]
  })
  return {
    type: 'object',
    ...described(describeSymbol(schemas, desc.typeName)),
    properties: { ...first, ...Object.fromEntries(properties) },
    required: [...Object.keys(first), ...always],
    ...(isOneof && { minProperties: 1, maxProperties: 1 }),
  }
}

/**
 * The schema of a request in a body.
 *
 * @param without - fields that stand elsewhere, by proto names
 */
export function requestSchema(schemas: MessageSchemas, desc: DescMessage, without: readonly string[] = []): JsonSchema {
  return schemas.refer(desc.typeName, () => {
    const fields = desc.fields.filter(({ name }) => !without.includes(name))
    const properties = fields.map((field): [string, JsonSchema] => {
      const schema = inputSchema(schemas, field)
      return [field.jsonName, boundsOf(field).isRequired ? schema : orNull(schema)]
    })
    const required = fields.filter((field) => boundsOf(field).isRequired).map(({ jsonName }) => jsonName)
    return {
      type: 'object',
      ...described(describeSymbol(schemas, desc.typeName)),
      properties: Object.fromEntries(properties),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    }
  })
}

/** In a body, null says as much as an absent field. */
function orNull({ type, ...rest }: JsonSchema): JsonSchema {
  if (typeof type !== 'string')
    throw new Error(`null is described for simple types only, not for ${rest.$ref ?? 'any'}`)
  return { type: [type, 'null'], ...rest }
}

/** The schema of a field of a request, with its bounds. */
export function inputSchema(schemas: MessageSchemas, field: DescField): JsonSchema {
  const { list, value } = boundsOf(field)
  const type = typeOfField(schemas, field, (message) => requestSchema(schemas, message))
  const bounded =
    type.items === undefined ? { ...type, ...value } : { ...type, items: { ...type.items, ...value }, ...list }
  return withComment(schemas, field, bounded)
}

type OfMessage = (message: DescMessage) => JsonSchema

function typeOfField(schemas: MessageSchemas, field: DescField, ofMessage: OfMessage): JsonSchema {
  const message = (desc: DescMessage) => wellKnown[desc.typeName] ?? ofMessage(desc)
  switch (field.fieldKind) {
    case 'scalar':
      return scalars[field.scalar]
    case 'enum':
      return enumSchema(schemas, field.enum)
    case 'message':
      return message(field.message)
    case 'list': {
      if (field.listKind === 'message') return { type: 'array', items: message(field.message) }
      return {
        type: 'array',
        items: field.listKind === 'enum' ? enumSchema(schemas, field.enum) : scalars[field.scalar],
      }
    }
    case 'map':
      if (field.mapKind !== 'scalar') throw new Error(`${String(field)}: only maps of scalars are described`)
      return { type: 'object', additionalProperties: scalars[field.scalar] }
  }
}

/** The names of an enum but for the zero value, which says nothing. */
function enumSchema(schemas: MessageSchemas, desc: DescEnum): JsonSchema {
  return schemas.refer(desc.typeName, () => {
    const names = desc.values.filter(({ number }) => number !== 0).map(({ name }) => name)
    const meanings = names.map((name) => `- \`${name}\`: ${describeSymbol(schemas, `${desc.typeName}.${name}`)}`)
    return {
      type: 'string',
      description: `${describeSymbol(schemas, desc.typeName)}\n\n${meanings.join('\n')}`,
      enum: names,
    }
  })
}

/**
 * The format of money and of all that is exact: generators leave a string alone whose format they do not know. Of `decimal`, those for Go and
 * Java make numbers.
 */
const DECIMAL = 'decimal-string'

/** Adds the comment of a field to its schema. JSON Schema 2020-12 allows it beside a `$ref`. */
function withComment({ comments }: MessageSchemas, field: DescField, schema: JsonSchema): JsonSchema {
  const { description, examples } = readComment(comments[`${field.parent.typeName}.${field.name}`] ?? '')
  const isDecimal = schema.type === 'string' && /\bdecimal string\b/i.test(description)
  return {
    ...schema,
    ...(isDecimal && { format: DECIMAL }),
    ...described(description),
    ...(examples.length > 0 && { examples: examplesFor(schema, examples) }),
  }
}

/** `payments.v1.Payment.Status` → `PaymentStatus` */
function componentName(typeName: string): string {
  return typeName.replace(/^(?:[a-z]\w*\.)+/, '').replaceAll('.', '')
}

/** An example of a list may be one of its elements. */
function examplesFor({ type }: JsonSchema, examples: readonly Json[]): readonly Json[] {
  return type === 'array' ? examples.map((each) => (Array.isArray(each) ? each : [each])) : examples
}

function described(description: string): JsonSchema {
  return description === '' ? {} : { description }
}

/**
 * Whether a field stands in every answer. Those without presence do. A message always has presence; without `optional` our definitions mean
 * that it is always set.
 */
function isAlwaysPresent(field: DescField): boolean {
  if (field.fieldKind === 'list' || field.fieldKind === 'map') return true
  if (field.oneof !== undefined || field.proto.proto3Optional) return false
  const isOurs = /^(?:payments|demo)\.v1\./.test(field.parent.typeName)
  return field.fieldKind === 'message' ? isOurs : field.presence === FeatureSet_FieldPresence.IMPLICIT
}

/** Messages that JSON writes in forms of their own. */
const wellKnown: Readonly<Record<string, JsonSchema>> = {
  'google.protobuf.Timestamp': { type: 'string', format: 'date-time' },
  'google.protobuf.Duration': { type: 'string', pattern: String.raw`^-?[0-9]+(\.[0-9]+)?s$` },
}

const whole32: JsonSchema = { type: 'integer', format: 'int32' }
const natural32: JsonSchema = { type: 'integer', format: 'int64', minimum: 0, maximum: 4294967295 }
const whole64: JsonSchema = { type: 'string', pattern: '^-?[0-9]+$' }
const natural64: JsonSchema = { type: 'string', pattern: '^[0-9]+$' }

const scalars: Readonly<Record<ScalarType, JsonSchema>> = {
  [ScalarType.STRING]: { type: 'string' },
  [ScalarType.BOOL]: { type: 'boolean' },
  [ScalarType.DOUBLE]: { type: 'number', format: 'double' },
  [ScalarType.FLOAT]: { type: 'number', format: 'float' },
  [ScalarType.INT32]: whole32,
  [ScalarType.SINT32]: whole32,
  [ScalarType.SFIXED32]: whole32,
  [ScalarType.UINT32]: natural32,
  [ScalarType.FIXED32]: natural32,
  [ScalarType.INT64]: whole64,
  [ScalarType.SINT64]: whole64,
  [ScalarType.SFIXED64]: whole64,
  [ScalarType.UINT64]: natural64,
  [ScalarType.FIXED64]: natural64,
  [ScalarType.BYTES]: { type: 'string', contentEncoding: 'base64' },
}
