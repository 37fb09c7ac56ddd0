import { type DescField, type DescMessage, type Message } from '@bufbuild/protobuf'
import { type GatheredErrors, gatherErrors } from '../../errors/gather-errors.ts'
import { unknownEnumValue, unknownField, usableNames } from './request-errors.ts'

type Properties = Readonly<Record<string, unknown>>

/** Refuses a message with fields or enum numbers that its definition does not have. */
export type UnknownCheck = (message: Message) => void

/** Checks a message. @param path - by JSON names; empty for the request itself */
type MessageCheck = (message: Message, path: string, errors: GatheredErrors) => void

/** Checks one field. @param path - of the message that holds it */
type FieldCheck = (properties: Properties, path: string, errors: GatheredErrors) => void

const checks = new WeakMap<DescMessage, MessageCheck>()

/**
 * Compiles the check that a decoded request holds no unknown field number and no undefined enum number, at any depth. Binary decoders
 * keep both silently, so a filter that is not understood would be ignored.
 *
 * The check throws WaybillError UNKNOWN_FIELD, UNKNOWN_ENUM_VALUE.
 */
export function compileUnknownCheck(desc: DescMessage): UnknownCheck {
  const check = checkOf(desc)
  return (message) => {
    const errors = gatherErrors()
    check(message, '', errors)
    errors.raise()
  }
}

function checkOf(desc: DescMessage): MessageCheck {
  const known = checks.get(desc)
  if (known !== undefined) return known
  // Compiled on first use, since a message may hold itself.
  let fields: readonly FieldCheck[] | undefined
  const check: MessageCheck = (message, path, errors) => {
    for (const no of new Set(message.$unknown?.map((field) => field.no))) {
      const where = path === '' ? String(no) : `${path}.${no}`
      errors.note(unknownField(where, `number ${no} of ${desc.typeName}`))
    }
    fields ??= desc.fields.flatMap((field) => checkOfField(field) ?? [])
    for (const checkField of fields) checkField(message as object as Properties, path, errors)
  }
  checks.set(desc, check)
  return check
}

function checkOfField(field: DescField): FieldCheck | undefined {
  const checkValue = checkOfValue(field)
  if (checkValue === undefined) return undefined
  const { localName, jsonName, oneof } = field
  const read = (properties: Properties): unknown => {
    if (oneof === undefined) return properties[localName]
    const selected = properties[oneof.localName] as { readonly case?: string; readonly value?: unknown }
    return selected.case === localName ? selected.value : undefined
  }
  return (properties, path, errors) => {
    const value = read(properties)
    if (value === undefined) return
    const where = path === '' ? jsonName : `${path}.${jsonName}`
    if (field.fieldKind === 'list') {
      for (const [index, item] of (value as readonly unknown[]).entries())
        checkValue(item, `${where}[${index}]`, errors)
    } else if (field.fieldKind === 'map') {
      for (const [key, item] of Object.entries(value as Properties)) checkValue(item, `${where}["${key}"]`, errors)
    } else {
      checkValue(value, where, errors)
    }
  }
}

function checkOfValue(field: DescField): ((value: unknown, path: string, errors: GatheredErrors) => void) | undefined {
  if (field.enum !== undefined) {
    const desc = field.enum
    const numbers = new Set(desc.values.map((value) => value.number))
    return (value, path, errors) => {
      if (numbers.has(value as number)) return
      errors.note(unknownEnumValue({ field: path, value: String(value), known: usableNames(desc) }))
    }
  }
  if (field.message === undefined) return undefined
  const { message } = field
  return (value, path, errors) => {
    // Wrappers and Structs are stored as bare values.
    if (typeof value !== 'object' || value === null || !('$typeName' in value)) return
    checkOf(message)(value as Message, path, errors)
  }
}
