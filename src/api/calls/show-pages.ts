import type { DescField, DescMessage } from '@bufbuild/protobuf'
import { type Answers, isStream } from './call.ts'
import type { Interceptor } from './served-method.ts'

/**
 * The fields that a page with a publishable key may see, by message. A list of what is shown, and not of what is hidden: a field that is
 * added later, and a message that is not listed, are left out until somebody decides about them.
 */
export type ShownToPages = Readonly<Record<string, ShownFields>>

/** The whole message, as for a time; or the fields of these local names. */
type ShownFields = 'all' | readonly string[]

/** Leaves out of the answers to pages what they may not see. The one place where that happens, for all protocols. */
export function showPages(shown: ShownToPages): Interceptor {
  return ({ desc: { output }, isForPages }, next) => {
    if (!isForPages) return next
    const reduce = (answer: object) => reduceMessage(answer, output, shown)
    return async (call) => {
      const answer = await next(call)
      if (call.caller?.page === undefined) return answer
      return isStream(answer) ? reduceEach(answer, reduce) : reduce(answer)
    }
  }
}

async function* reduceEach(answers: Answers, reduce: (answer: object) => object): Answers {
  for await (const answer of answers) yield reduce(answer)
}

/** Reduces a message, or what `create` takes to make it, to the fields that are shown. */
function reduceMessage(message: object, desc: DescMessage, shown: ShownToPages): object {
  const names = shown[desc.typeName] ?? []
  if (names === 'all') return message
  const given = message as Readonly<Record<string, unknown>>
  const reduced: Record<string, unknown> = {}
  for (const field of desc.fields) {
    const { localName, oneof } = field
    if (!names.includes(localName)) continue
    if (oneof === undefined) {
      if (given[localName] !== undefined) reduced[localName] = reduceValue(given[localName], field, shown)
      continue
    }
    const chosen = given[oneof.localName] as { readonly case?: string; readonly value?: unknown } | undefined
    if (chosen?.case !== localName) continue
    reduced[oneof.localName] = { case: localName, value: reduceValue(chosen.value, field, shown) }
  }
  return reduced
}

function reduceValue(value: unknown, { message, fieldKind }: DescField, shown: ShownToPages): unknown {
  if (message === undefined || fieldKind === 'map') return value
  if (Array.isArray(value)) return value.map((each: object) => reduceMessage(each, message, shown))
  return reduceMessage(value as object, message, shown)
}
