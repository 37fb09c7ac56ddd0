import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  isFieldSet,
  type Message,
  ScalarType,
} from '@bufbuild/protobuf'
import { type Path, type ReflectList, type ReflectMap, type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt'
import { createValidator, type Violation } from '@bufbuild/protovalidate'
import {
  type EnumRules,
  EnumRulesSchema,
  type FieldRules,
  FieldRulesSchema,
  field as fieldRules,
  type Int32Rules,
  Int32RulesSchema,
  MessageRulesSchema,
  message as messageRules,
  oneof as oneofRules,
  RepeatedRulesSchema,
  type StringRules,
  StringRulesSchema,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { MAX_VIOLATIONS, mergeErrors } from '../../errors/gather-errors.ts'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
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
    const violations = result.violations.filter((violation) => !isAnyOfList(violation, desc, message))
    if (violations.length > 0) throw describeViolations(violations, desc, message)
  }
}

function describeViolations(violations: readonly Violation[], desc: DescMessage, message: Message): WaybillError {
  const reported = violations.slice(0, MAX_VIOLATIONS)
  const count = violations.length - reported.length
  return mergeErrors(
    reported.map((violation) => describe(violation, desc, message)),
    count > 0 ? { count, isRestUnchecked: false } : undefined,
  )
}

/** Whether a text begins as an allowed one that ends with `.*`, such as `metadata.*`. */
function isAnyOfList({ field: path, ruleId }: Violation, input: DescMessage, message: Message): boolean {
  const ofField = path.findLast((part) => part.kind === 'field')
  if (ruleId !== 'string.in' || ofField === undefined) return false
  const value = String(valueAt(input, message, path))
  return allowedTexts(ofField).some((text) => text.endsWith('.*') && value.startsWith(text.slice(0, -1)))
}

const tooLong = new Set(['string.max_len', 'string.max_bytes', 'bytes.max_len'])
const tooMany = new Set(['repeated.max_items', 'map.max_pairs'])

function describe(
  { field: path, ruleId, message: detail }: Violation,
  input: DescMessage,
  message: Message,
): WaybillError {
  const field = jsonPathOf(path)
  if (ruleId === 'required') return waybillError('MISSING_FIELD', { field })
  if (tooLong.has(ruleId)) return waybillError('VALUE_TOO_LONG', { field, detail })
  if (tooMany.has(ruleId)) return waybillError('TOO_MANY_VALUES', { field, detail })
  const value = valueAt(input, message, path)
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

function valueAt(desc: DescMessage, message: Message, path: Path): unknown {
  let value: unknown = reflect(desc, message)
  for (const part of path) {
    if (part.kind === 'list_sub') value = (value as ReflectList).get(part.index)
    else if (part.kind === 'map_sub') value = (value as ReflectMap).get(part.key)
    else if (part.kind === 'field') value = (value as ReflectMessage).get(part)
  }
  return value
}

type Properties = Readonly<Record<string, unknown>>
/** Whether a value certainly breaks no rule. */
type Holds = (value: unknown) => boolean

/**
 * Compiles a check that accepts most valid messages at a twentieth of the cost of protovalidate. It checks only the fields that are set,
 * and knows only required fields, lengths of texts and lists, bounds of numbers and members of enums. A message that it does not accept must be
 * validated by protovalidate.
 *
 * @returns whether a message certainly breaks no rule
 */
export function compileFastValidation(desc: DescMessage): (message: Message) => boolean {
  if (hasRulesOfItsOwn(desc)) return () => false
  const checks = desc.fields.map(checkOf)
  return (message) => checks.every((check) => check(message as object as Properties))
}

function hasRulesOfItsOwn(desc: DescMessage): boolean {
  const rules = getOption(desc, messageRules)
  const isRuled = MessageRulesSchema.fields.some((field) => isFieldSet(rules, field)) || rules.$unknown !== undefined
  return isRuled || desc.oneofs.some((oneof) => getOption(oneof, oneofRules).required)
}

function checkOf(field: DescField): (properties: Properties) => boolean {
  const { localName, oneof } = field
  const rules = getOption(field, fieldRules)
  const holds = holdsOf(field, rules)
  if (oneof !== undefined) return (properties) => (properties[oneof.localName] as { case?: string }).case !== localName
  // Of a field that is not set, only the rule `required` is checked.
  const mayBeUnset = !rules.required && field.presence !== FeatureSet_FieldPresence.IMPLICIT
  return (properties) => {
    const value = properties[localName]
    return value === undefined ? mayBeUnset : holds(value)
  }
}

function holdsOf(field: DescField, rules: FieldRules): Holds {
  if (field.fieldKind === 'list') return listHolds(field, rules)
  if (!knows(FieldRulesSchema, rules, ['required', 'string', 'int32', 'enum'])) return refuse
  // A field without presence that holds its zero counts as not set.
  const isThere: Holds = rules.required && field.presence === FeatureSet_FieldPresence.IMPLICIT ? Boolean : () => true
  const holds = elementHolds(field, rules.type)
  return (value) => isThere(value) && holds(value)
}

function listHolds(field: DescField & { fieldKind: 'list' }, rules: FieldRules): Holds {
  const { required, type } = rules
  const ofList = type.case === 'repeated' ? type.value : create(RepeatedRulesSchema)
  const isKnown = knows(FieldRulesSchema, rules, ['required', 'repeated'])
  if (!isKnown || !knows(RepeatedRulesSchema, ofList, ['max_items', 'items'])) return refuse
  const { items, maxItems } = ofList
  const most = isFieldSet(ofList, RepeatedRulesSchema.field.maxItems) ? Number(maxItems) : Number.POSITIVE_INFINITY
  const areKnown = items === undefined || knows(FieldRulesSchema, items, ['string', 'int32', 'enum'])
  const holds = areKnown ? elementHolds(field, items?.type) : refuse
  return (value) => {
    const list = value as readonly unknown[]
    return list.length === 0 ? !required : list.length <= most && list.every(holds)
  }
}

function elementHolds({ scalar, enum: ofEnum, message }: DescField, type: FieldRules['type'] | undefined): Holds {
  if (type?.case === 'string' && scalar === ScalarType.STRING) return textHolds(type.value)
  if (type?.case === 'enum' && ofEnum !== undefined) return enumHolds(type.value, ofEnum)
  if (type?.case === 'int32' && scalar === ScalarType.INT32) return numberHolds(type.value)
  return type?.case === undefined && message === undefined ? () => true : refuse
}

/** The rules count characters: a text of n UTF-16 units has between n / 2 and n of them. */
function textHolds(rules: StringRules): Holds {
  if (!knows(StringRulesSchema, rules, ['min_len', 'max_len'])) return refuse
  const least = 2 * Number(rules.minLen) - 1
  const most = isFieldSet(rules, StringRulesSchema.field.maxLen) ? Number(rules.maxLen) : Number.POSITIVE_INFINITY
  return (value) => (value as string).length >= least && (value as string).length <= most
}

function numberHolds(rules: Int32Rules): Holds {
  if (!knows(Int32RulesSchema, rules, ['gte', 'lte'])) return refuse
  const { greaterThan, lessThan } = rules
  const least = greaterThan.case === 'gte' ? greaterThan.value : Number.NEGATIVE_INFINITY
  const most = lessThan.case === 'lte' ? lessThan.value : Number.POSITIVE_INFINITY
  return (value) => (value as number) >= least && (value as number) <= most
}

function enumHolds(rules: EnumRules, desc: DescEnum): Holds {
  if (!knows(EnumRulesSchema, rules, ['defined_only', 'not_in'])) return refuse
  return (value) => desc.value[value as number] !== undefined && !rules.notIn.includes(value as number)
}

/** Whether all rules that are set are among those that are checked here. */
function knows(desc: DescMessage, rules: Message, names: readonly string[]): boolean {
  const isForeign = (field: DescField) => !names.includes(field.name) && isFieldSet(rules, field)
  return rules.$unknown === undefined && !desc.fields.some(isForeign)
}

function refuse(): boolean {
  return false
}
