import { type DescField, getOption, isFieldSet } from '@bufbuild/protobuf'
import {
  type FieldRules,
  field as fieldRules,
  type Int32Rules,
  RepeatedRulesSchema,
  type StringRules,
  StringRulesSchema,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { type Reason, reasons } from '../../errors/reasons.ts'
import type { Json, JsonSchema } from './openapi-document.ts'

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
    // One that ends with `.*` stands for all that begin with it.
    ...(rules.in.length > 0 && { pattern: `^(?:${rules.in.join('|').replaceAll('.*', '\\..+')})$` }),
  }
}

function numberBounds({ greaterThan, lessThan }: Int32Rules): JsonSchema {
  return {
    ...(greaterThan.case === 'gte' && { minimum: greaterThan.value }),
    ...(lessThan.case === 'lte' && { maximum: lessThan.value }),
  }
}

/** What a comment of proto/ says, for people and for programs. */
export interface Comment {
  /** The text without examples that stand by themselves. */
  readonly description: string
  readonly examples: readonly Json[]
}

/** `Example: "a".` or `Examples: "a", "b".`, each value as JSON in backticks; a group holds the values. */
const exampleSentence = /\s*\bExamples?: ((?:`[^`]+`(?:, )?)+)(?:\.(?=\s|$))?/g

/**
 * Reads a comment. Its examples are JSON in backticks. A sentence that says more about an example stays in the text.
 *
 * @param comment - paragraphs of one line each
 */
export function readComment(comment: string): Comment {
  const examples: Json[] = []
  const description = comment.replaceAll(exampleSentence, (sentence, values: string) => {
    const found = [...values.matchAll(/`([^`]+)`/g)].map(([, text = '']) => parseJson(text))
    if (found.includes(undefined)) return sentence
    examples.push(...(found as Json[]))
    return sentence.endsWith('.') ? '' : sentence
  })
  return { description: description.trim(), examples }
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

/** The first sentence, for a heading. */
export function firstSentence(text: string): string {
  return /^[\s\S]*?[.:](?=\s|$)/.exec(text)?.[0]?.replace(/[.:]$/, '') ?? text
}

/** The reasons of errors that a comment names. */
export function reasonsIn(comment: string): readonly Reason[] {
  const words: readonly string[] = comment.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b/g) ?? []
  return words.filter(isReason).filter((reason) => isError(reason))
}

function isReason(word: string): word is Reason {
  return Object.hasOwn(reasons, word)
}

export function isError(reason: Reason): boolean {
  return reasons[reason].in.includes('error')
}
