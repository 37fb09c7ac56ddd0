import { type Reason, reasons } from '../../errors/reasons.ts'
import type { Json } from './openapi-document.ts'

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
