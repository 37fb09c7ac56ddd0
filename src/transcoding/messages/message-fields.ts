import { create, type DescField, type DescMessage, type Message } from '@bufbuild/protobuf'
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt'

/** A message as protobuf-es stores it: one property for each field, and `{case, value}` for each oneof. */
type Properties = Record<string, unknown>

interface Selected {
  readonly case: string | undefined
  readonly value?: unknown
}

export type MessageField = Extract<DescField, { fieldKind: 'message' }>

/** The member of the field's oneof that is set, if it is not the field itself. */
export function otherMember(message: Message, field: DescField): string | undefined {
  if (field.oneof === undefined) return undefined
  const selected = propertiesOf(message)[field.oneof.localName] as Selected
  if (selected.case === undefined || selected.case === field.localName) return undefined
  return field.oneof.fields.find((member) => member.localName === selected.case)?.name
}

/** The value of a singular field as protobuf-es stores it; undefined if it is not set, or is zero without presence. */
export function readField(message: Message, field: DescField): unknown {
  const properties = propertiesOf(message)
  if (field.oneof !== undefined) {
    const selected = properties[field.oneof.localName] as Selected
    return selected.case === field.localName ? selected.value : undefined
  }
  if (!Object.hasOwn(properties, field.localName)) return undefined
  const value = properties[field.localName]
  return field.presence === FeatureSet_FieldPresence.IMPLICIT && isZero(value) ? undefined : value
}

/** Sets a singular field, and so replaces the member of its oneof that was set. */
export function writeField(message: Message, field: DescField, value: unknown): void {
  const properties = propertiesOf(message)
  if (field.oneof === undefined) properties[field.localName] = value
  else properties[field.oneof.localName] = { case: field.localName, value }
}

/** Adds to a repeated field. */
export function appendToField(message: Message, field: DescField, value: unknown): void {
  const list = propertiesOf(message)[field.localName] as unknown[]
  list.push(value)
}

/** How many elements a list holds so far. */
export function lengthOfList(message: Message, field: DescField): number {
  return (propertiesOf(message)[field.localName] as unknown[]).length
}

/** The message in a field, created if it is not set. Not for wrappers. */
export function openMessage(message: Message, field: MessageField): Message {
  const present = readField(message, field)
  if (present !== undefined) return present as Message
  const made = create(field.message)
  writeField(message, field, made)
  return made
}

const fieldsByName = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>()

/** The fields of a message by proto name and by JSON name. A Map, so that `constructor` is an unknown name like any other. */
export function fieldsOf(desc: DescMessage): ReadonlyMap<string, DescField> {
  let fields = fieldsByName.get(desc)
  if (fields === undefined) {
    fields = new Map([
      ...desc.fields.map((field) => [field.jsonName, field] as const),
      ...desc.fields.map((field) => [field.name, field] as const),
    ])
    fieldsByName.set(desc, fields)
  }
  return fields
}

function propertiesOf(message: Message): Properties {
  return message
}

function isZero(value: unknown): boolean {
  return !value || value === '0' || (value instanceof Uint8Array && value.length === 0)
}
