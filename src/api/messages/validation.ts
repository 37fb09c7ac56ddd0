import type { DescMessage, Message } from '@bufbuild/protobuf'
import type { Path } from '@bufbuild/protobuf/reflect'
import { createValidator, type Violation } from '@bufbuild/protovalidate'
import { MAX_VIOLATIONS, mergeErrors } from '../../errors/gather-errors.ts'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { compileFastValidation } from './fast-validation.ts'
import { allowedTexts } from './proto-options.ts'
import { invalidLimit, unknownEnumValue, usableNames } from './request-errors.ts'

/**
 * Refuses a message that breaks the buf.validate rules of its definition. Throws a WaybillError that lists every violation; its
 * message is about the first.
 */
export type Validate = (desc: DescMessage, message: Message) => void

/** Makes the validation. Regular expressions come from our own definitions only, so they are compiled once and kept. */
export function createValidate(): Validate {
  const expressions = new Map<string, RegExp>()
  const regexMatch = (pattern: string, text: string): boolean => {
    let expression = expressions.get(pattern)
    if (expression === undefined) {
      expression = new RegExp(pattern, 'u')
      expressions.set(pattern, expression)
    }
    return expression.test(text)
  }
  const validator = createValidator({ regexMatch })
  const quickChecks = new Map<DescMessage, (message: Message) => boolean>()
  return (desc, message) => {
    let passesFastPath = quickChecks.get(desc)
    if (passesFastPath === undefined) {
      passesFastPath = compileFastValidation(desc)
      quickChecks.set(desc, passesFastPath)
    }
    if (passesFastPath(message)) return
    const result = validator.validate(desc, message)
    if (result.kind === 'valid') return
    if (result.kind === 'error') throw result.error
    throw describeViolations(result.violations, message)
  }
}

function describeViolations(violations: readonly Violation[], message: Message): WaybillError {
  const told = violations.slice(0, MAX_VIOLATIONS)
  const count = violations.length - told.length
  return mergeErrors(
    told.map((violation) => describe(violation, message)),
    count > 0 ? { count, isRestUnchecked: false } : undefined,
  )
}

const tooLong = new Set(['string.max_len', 'string.max_bytes', 'bytes.max_len'])
const tooMany = new Set(['repeated.max_items', 'map.max_pairs'])

function describe({ field: path, ruleId, message: detail }: Violation, message: Message): WaybillError {
  const field = jsonPathOf(path)
  if (ruleId === 'required') return waybillError('MISSING_FIELD', { field })
  if (tooLong.has(ruleId)) return waybillError('VALUE_TOO_LONG', { field, detail })
  if (tooMany.has(ruleId)) return waybillError('TOO_MANY_VALUES', { field, detail })
  const value = valueAt(message, path)
  const ofField = path.findLast((part) => part.kind === 'field')
  if (ruleId === 'string.in') {
    return unknownEnumValue({ field, value: String(value), known: ofField ? allowedTexts(ofField) : [] })
  }
  const desc = ofField?.enum
  if (desc !== undefined) {
    const name = desc.values.find((each) => each.number === value)?.name
    return unknownEnumValue({ field, value: name ?? String(value), known: usableNames(desc) })
  }
  if (field === 'limit') return invalidLimit(String(value))
  return waybillError('INVALID_FIELD', { field, detail })
}

/** `items[2].unitPrice` */
function jsonPathOf(path: Path): string {
  let text = ''
  for (const part of path) {
    if (part.kind === 'list_sub') text += `[${part.index}]`
    else if (part.kind === 'map_sub') text += `[${JSON.stringify(String(part.key))}]`
    else text += (text === '' ? '' : '.') + (part.kind === 'field' ? part.jsonName : part.name)
  }
  return text
}

function valueAt(message: Message, path: Path): unknown {
  let value: unknown = message
  for (const part of path) {
    const properties = value as Record<string, unknown>
    if (part.kind === 'list_sub') value = properties[part.index]
    else if (part.kind === 'map_sub') value = properties[String(part.key)]
    else if (part.kind === 'field' && part.oneof !== undefined)
      value = propertyOf(properties[part.oneof.localName], 'value')
    else if (part.kind === 'field') value = properties[part.localName]
    if (value === undefined || value === null) return undefined
  }
  return value
}

function propertyOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}
