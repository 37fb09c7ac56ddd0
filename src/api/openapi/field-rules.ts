import { type DescField, getOption, isFieldSet } from '@bufbuild/protobuf'
import {
  type FieldRules,
  field as fieldRules,
  type Int32Rules,
  RepeatedRulesSchema,
  type StringRules,
  StringRulesSchema,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import type { JsonSchema } from './openapi-document.ts'

/** What buf.validate demands of a field, in the words of JSON Schema. */
export interface FieldBounds {
  readonly isRequired: boolean
  /** Of a list: its lengths. Of other fields empty. */
  readonly list: JsonSchema
  /** Of the value, or of each element of a list. */
  readonly value: JsonSchema
}

/** Reads the buf.validate rules of a field, which the service checks each request against. */
export function boundsOf(field: DescField): FieldBounds {
  const rules = getOption(field, fieldRules)
  const { required: isRequired } = rules
  if (rules.type.case !== 'repeated') return { isRequired, list: {}, value: valueBounds(rules, isRequired) }
  const { value: ofList } = rules.type
  const { minItems, maxItems } = RepeatedRulesSchema.field
  const list = {
    ...(isFieldSet(ofList, minItems) && { minItems: Number(ofList.minItems) }),
    ...(isFieldSet(ofList, maxItems) && { maxItems: Number(ofList.maxItems) }),
  }
  return { isRequired, list, value: ofList.items === undefined ? {} : valueBounds(ofList.items, false) }
}

function valueBounds({ type }: FieldRules, isRequired: boolean): JsonSchema {
  if (type.case === 'string') return textBounds(type.value, isRequired)
  return type.case === 'int32' ? numberBounds(type.value) : {}
}

/** An empty text counts as missing. */
function textBounds(rules: StringRules, isRequired: boolean): JsonSchema {
  const { minLen, maxLen, pattern } = StringRulesSchema.field
  const least = isFieldSet(rules, minLen) ? Number(rules.minLen) : isRequired ? 1 : undefined
  return {
    ...(least !== undefined && { minLength: least }),
    ...(isFieldSet(rules, maxLen) && { maxLength: Number(rules.maxLen) }),
    ...(isFieldSet(rules, pattern) && { pattern: rules.pattern }),
  }
}

function numberBounds({ greaterThan, lessThan }: Int32Rules): JsonSchema {
  return {
    ...(greaterThan.case === 'gte' && { minimum: greaterThan.value }),
    ...(lessThan.case === 'lte' && { maximum: lessThan.value }),
  }
}
