import type { DescField, DescMessage, Message } from '@bufbuild/protobuf'
import { quote, type ReportMistake, reportThrown, TranscodingError, throwMistake } from './errors/transcoding-error.ts'
import { findTextReader, readText, type TextReader } from './messages/field-text.ts'
import { MAX_DEPTH } from './messages/json-text.ts'
import {
  appendToField,
  fieldsOf,
  lengthOfList,
  type MessageField,
  openMessage,
  otherMember,
  writeField,
} from './messages/message-fields.ts'
import { decodeQueryComponent } from './paths/percent-decoding.ts'

interface QueryMappingOptions {
  /** The fields that the path template binds, by proto names. */
  readonly boundInPath: readonly string[]
  /** The field bound in the body, `*` for all, empty for none. */
  readonly boundInBody: string
  /** Whether one parameter of this repeated field may hold several values, separated by commas. */
  readonly isCommaSeparated: (field: DescField) => boolean
}

/** Writes the parameters of a query string into the fields of a message. By default the first mistake is thrown. */
type QueryMapper = (message: Message, rawQuery: string, report?: ReportMistake) => void

/** The field that a parameter names. */
interface Target {
  /** The fields that lead to it. */
  readonly parents: readonly MessageField[]
  readonly field: DescField
  readonly reader: TextReader
  readonly commaSeparated: boolean
  /** The dotted path in proto names, the same for every spelling. */
  readonly canonical: string
}

/** A recursive message has infinitely many nested paths. */
const MAX_CACHED_TARGETS = 256

/**
 * Compiles the mapping of query parameters for one binding (http.proto, "Rules for HTTP mapping", 3: the fields that
 * neither path nor body binds). A parameter is named by proto or JSON names, `fee_percentage` or `feePercentage`, nested ones with
 * dots. The mapper reports TranscodingError: UNKNOWN_PARAMETER, INVALID_VALUE, DUPLICATE_PARAMETER, ONEOF_CONFLICT,
 * PATH_VARIABLE_OVERRIDDEN, BODY_FIELD_OVERRIDDEN, NOT_MAPPABLE, MALFORMED_ESCAPE, INVALID_UTF8, TOO_DEEP.
 */
export function compileQueryMapping(input: DescMessage, options: QueryMappingOptions): QueryMapper {
  const targets = new Map<string, Target>()

  function findTarget(name: string): Target {
    const cached = targets.get(name)
    if (cached !== undefined) return cached
    const target = resolveTarget(input, name, options)
    if (targets.size < MAX_CACHED_TARGETS) targets.set(name, target)
    return target
  }

  function mapPair(message: Message, pair: string, seen: SeenParameters): void {
    const equals = pair.indexOf('=')
    const name = decodeQueryComponent(equals < 0 ? pair : pair.slice(0, equals))
    const text = equals < 0 ? '' : decodeQueryComponent(pair.slice(equals + 1), name)
    const target = findTarget(name)
    const { parents, field, reader, canonical } = target
    if (field.fieldKind === 'list') return append(openOwner(message, parents, name), target, { name, text }, seen)
    if (seen.given.has(canonical)) throw duplicate(name, text)
    seen.given.add(canonical)
    const owner = openOwner(message, parents, name)
    refuseOtherMember(owner, field, name)
    writeField(owner, field, readText(reader, name, text))
  }

  return (message, rawQuery, report = throwMistake) => {
    if (rawQuery === '') return
    const seen: SeenParameters = { given: new Set(), wrong: new Map(), report }
    for (const pair of rawQuery.split('&')) {
      if (pair === '') continue
      try {
        mapPair(message, pair, seen)
      } catch (thrown) {
        reportThrown(thrown, report)
      }
    }
  }
}

/** What has been read of one query. */
interface SeenParameters {
  /** Singular fields that were given. */
  readonly given: Set<string>
  /** How many elements of each list were wrong and left out. */
  readonly wrong: Map<string, number>
  readonly report: ReportMistake
}

/** The message that holds a field, created if it is not set. */
export function openOwner(message: Message, parents: readonly MessageField[], name: string): Message {
  return parents.reduce((owner, parent) => {
    refuseOtherMember(owner, parent, name)
    return openMessage(owner, parent)
  }, message)
}

function append(
  owner: Message,
  { field, reader, commaSeparated, canonical }: Target,
  { name, text }: { readonly name: string; readonly text: string },
  { wrong, report }: SeenParameters,
): void {
  const elements = commaSeparated ? text.split(',') : [text]
  for (const element of elements) {
    const left = wrong.get(canonical) ?? 0
    const place = `${name}[${lengthOfList(owner, field) + left}]`
    try {
      if (commaSeparated && element === '') throw emptyElement(elements.length === 1 ? name : place)
      appendToField(owner, field, readText(reader, place, element))
    } catch (thrown) {
      wrong.set(canonical, left + 1)
      reportThrown(thrown, report)
    }
  }
}

function emptyElement(place: string): TranscodingError {
  return new TranscodingError('INVALID_VALUE', `${quote(place)}: it is empty`, { field: place, value: '' })
}

/** @throws TranscodingError ONEOF_CONFLICT when another member of the field's oneof is set */
export function refuseOtherMember(owner: Message, field: DescField, name: string): void {
  const other = otherMember(owner, field)
  if (other === undefined) return
  const problem = `${quote(name)} and ${quote(other)} exclude each other: give one of them`
  throw new TranscodingError('ONEOF_CONFLICT', problem, { field: name })
}

function duplicate(name: string, text: string): TranscodingError {
  const problem = `parameter ${quote(name)} is given twice and takes one value`
  return new TranscodingError('DUPLICATE_PARAMETER', problem, { field: name, value: text })
}

function resolveTarget(input: DescMessage, name: string, options: QueryMappingOptions): Target {
  const parts = name.split('.')
  if (parts.length > MAX_DEPTH) {
    const problem = `parameter ${quote(name)} is nested deeper than ${MAX_DEPTH} names`
    throw new TranscodingError('TOO_DEEP', problem, { field: name })
  }
  const parents: MessageField[] = []
  let message = input
  for (const [index, part] of parts.entries()) {
    const field = fieldsOf(message).get(part)
    if (field === undefined) throw unknown(message, parts, index, parents, options)
    if (index < parts.length - 1) {
      refuseFieldWithoutFields(field, name)
      parents.push(field)
      message = field.message
      continue
    }
    const canonical = [...parents, field].map((each) => each.name).join('.')
    refuseBoundElsewhere(canonical, name, options)
    const reader = findTextReader(field)
    if (reader === undefined) throw notMappable(field, name)
    const commaSeparated = field.fieldKind === 'list' && options.isCommaSeparated(field)
    return { parents, field, reader, commaSeparated, canonical }
  }
  throw unknown(input, parts, 0, parents, options)
}

function refuseFieldWithoutFields(field: DescField, name: string): asserts field is MessageField {
  const isListOfMessages = field.fieldKind === 'list' && field.listKind === 'message'
  if (field.fieldKind === 'map' || isListOfMessages) throw notMappable(field, name)
  if (field.fieldKind === 'message' && findTextReader(field) === undefined && !isJsonLike(field.message)) return
  const problem = `unknown parameter ${quote(name)}: ${quote(field.name)} has no fields of its own`
  throw new TranscodingError('UNKNOWN_PARAMETER', problem, { field: name, suggestion: field.jsonName })
}

/** Messages whose JSON may be any value. Their fields cannot be named in a query. */
function isJsonLike({ typeName }: DescMessage): boolean {
  return /^google\.protobuf\.(?:Struct|Value|ListValue|Any)$/.test(typeName)
}

function refuseBoundElsewhere(canonical: string, name: string, options: QueryMappingOptions): void {
  if (options.boundInPath.some((bound) => isSameOrWithin(canonical, bound))) {
    const problem = `parameter ${quote(name)} is bound by the path and cannot be given again`
    throw new TranscodingError('PATH_VARIABLE_OVERRIDDEN', problem, { field: name })
  }
  if (options.boundInBody === '*' || isSameOrWithin(canonical, options.boundInBody)) {
    const problem = `parameter ${quote(name)} belongs in the body`
    throw new TranscodingError('BODY_FIELD_OVERRIDDEN', problem, { field: name })
  }
}

function isSameOrWithin(canonical: string, bound: string): boolean {
  return canonical === bound || (bound !== '' && canonical.startsWith(`${bound}.`))
}

function notMappable(field: DescField, name: string): TranscodingError {
  const kinds = {
    map: 'a map',
    list: 'a list of messages',
    message: 'a message',
    scalar: 'a scalar',
    enum: 'an enum',
  } as const
  const problem = `parameter ${quote(name)} is ${kinds[field.fieldKind]}, which a query cannot carry`
  const nested = field.fieldKind === 'message' ? field.message.fields[0] : undefined
  const suggestion = nested && findTextReader(nested) ? `${name}.${nested.jsonName}` : undefined
  return new TranscodingError('NOT_MAPPABLE', problem, { field: name, suggestion })
}

function unknown(
  message: DescMessage,
  parts: readonly string[],
  index: number,
  parents: readonly MessageField[],
  options: QueryMappingOptions,
): TranscodingError {
  const name = parts.join('.')
  const part = parts[index] ?? ''
  const subscripted = /^([^[\]]+)\[.*\]$/.exec(part)?.[1]
  const map = subscripted === undefined ? undefined : fieldsOf(message).get(subscripted)
  if (map?.fieldKind === 'map') return notMappable(map, name)

  const prefix = parents.map((parent) => `${parent.name}.`).join('')
  const free = [...fieldsOf(message)].filter(([, field]) => isFree(`${prefix}${field.name}`, options))
  const before = parts.slice(0, index)
  const known = [...new Set(free.flatMap(([, field]) => namesWithin(field).map((each) => [...before, each].join('.'))))]
  return new TranscodingError('UNKNOWN_PARAMETER', `unknown parameter ${quote(name)}`, {
    field: name,
    known,
  })
}

/** A field's name in a query. A message has none itself, its fields have: `exclude.status`. */
function namesWithin(field: DescField): string[] {
  const isNested = field.fieldKind === 'message' && findTextReader(field) === undefined && !isJsonLike(field.message)
  return isNested ? field.message.fields.map((each) => `${field.jsonName}.${each.jsonName}`) : [field.jsonName]
}

function isFree(canonical: string, { boundInPath, boundInBody }: QueryMappingOptions): boolean {
  return !boundInPath.includes(canonical) && boundInBody !== '*' && boundInBody !== canonical
}
