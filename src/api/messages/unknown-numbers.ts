import { type DescField, type DescMessage, isMessage, type Message } from '@bufbuild/protobuf'
import { type GatheredErrors, gatherErrors } from '../../errors/gather-errors.ts'
import { readField } from '../../transcoding/messages/message-fields.ts'
import { unknownEnumValue, unknownField, usableNames } from './request-errors.ts'

/**
 * Refuses a decoded request with unknown field numbers or undefined enum numbers, at any depth. Binary decoders keep both silently, so a
 * filter that is not understood would be ignored.
 *
 * @throws WaybillError UNKNOWN_FIELD, UNKNOWN_ENUM_VALUE
 */
export function refuseUnknownNumbers(desc: DescMessage, message: Message): void {
  const errors = gatherErrors()
  checkMessage(desc, message, '', errors)
  errors.raise()
}

/** @param prefix - the path of the message by JSON names, with a dot; empty for the request itself */
function checkMessage(desc: DescMessage, message: Message, prefix: string, errors: GatheredErrors): void {
  for (const no of new Set(message.$unknown?.map((field) => field.no))) {
    errors.note(unknownField(`${prefix}${no}`, `number ${no} of ${desc.typeName}`))
  }
  for (const field of desc.fields) {
    if (field.enum === undefined && field.message === undefined) continue
    const value = readField(message, field)
    if (value === undefined) continue
    const path = `${prefix}${field.jsonName}`
    if (field.fieldKind === 'list') {
      for (const [index, item] of (value as readonly unknown[]).entries()) {
        checkValue(field, item, `${path}[${index}]`, errors)
      }
    } else if (field.fieldKind === 'map') {
      for (const [key, item] of Object.entries(value as object)) checkValue(field, item, `${path}["${key}"]`, errors)
    } else {
      checkValue(field, value, path, errors)
    }
  }
}

function checkValue(field: DescField, value: unknown, path: string, errors: GatheredErrors): void {
  // Wrappers and Structs are stored as bare values.
  if (field.message !== undefined && isMessage(value)) checkMessage(field.message, value, `${path}.`, errors)
  if (field.enum === undefined || field.enum.value[value as number] !== undefined) return
  errors.note(unknownEnumValue({ field: path, value: String(value), known: usableNames(field.enum) }))
}
