import { findNearestName } from '../../domain/nearest.ts'
import type { PathTemplate, Segment } from '../../transcoding/paths/template-parser.ts'

/**
 * Finds the path that the caller most likely meant, for a path without a route: a segment of a template is missing, superfluous or
 * mistyped, or the verb is. The values of variables are kept as they were sent.
 *
 * @param templates - those with `**` are ignored
 * @returns undefined if none is near
 */
export function findNearestPath(rawPath: string, templates: readonly PathTemplate[]): string | undefined {
  const sent = segmentsOf(rawPath)
  const candidates = templates
    .filter(({ segments }) => segments.every(({ kind }) => kind !== 'any'))
    .flatMap((template) => candidatesBy(template, sent))
    .filter((candidate) => candidate !== undefined)
  return findNearestName(`/${sent.join('/')}`, candidates)
}

function segmentsOf(rawPath: string): readonly string[] {
  return rawPath.split('/').filter((segment) => segment !== '')
}

function candidatesBy(template: PathTemplate, sent: readonly string[]): readonly (string | undefined)[] {
  const { segments, verb } = template
  const longestChange = Math.floor(lengthOfLiterals(template) / 3)
  if (verb === '') return alignments(sent, segments, longestChange).map((aligned) => fill(aligned, segments))
  const [path, sentVerb] = cutVerb(sent)
  if (findNearestName(sentVerb, [verb]) === undefined) return []
  return alignments(path, segments, longestChange).map((aligned) => {
    const filled = fill(aligned, segments)
    return filled && `${filled}:${verb}`
  })
}

/** The length of the literals of a template, verb included. */
function lengthOfLiterals({ segments, verb }: PathTemplate): number {
  return segments.reduce((sum, segment) => sum + (segment.kind === 'literal' ? segment.text.length : 0), verb.length)
}

/** Splits the last segment at its first colon. */
function cutVerb(sent: readonly string[]): readonly [path: readonly string[], verb: string] {
  const [last = '', ...verb] = sent.at(-1)?.split(/:|%3a/i) ?? []
  return [[...sent.slice(0, -1), last], verb.join(':')]
}

/**
 * The ways to give the sent path as many segments as the template: unchanged, with one literal added, or with one segment removed. The added
 * or removed segment is at most as long as the allowed edits. In these ways a plain word is not taken for the value of a variable.
 */
function alignments(
  sent: readonly string[],
  template: readonly Segment[],
  longestChange: number,
): readonly (readonly string[])[] {
  if (sent.length === template.length) return [sent]
  const hasValues = (aligned: readonly string[]) =>
    template.every(({ kind }, at) => kind === 'literal' || !/^[a-z-]{2,}$/i.test(aligned[at] ?? ''))
  if (sent.length === template.length - 1) {
    return template
      .flatMap((segment, at) => {
        const isMissing = segment.kind === 'literal' && segment.text.length <= longestChange
        return isMissing ? [sent.toSpliced(at, 0, segment.text)] : []
      })
      .filter(hasValues)
  }
  if (sent.length !== template.length + 1) return []
  return sent
    .flatMap((segment, at) => (segment.length <= longestChange ? [sent.toSpliced(at, 1)] : []))
    .filter(hasValues)
}

/** Fills in a template; undefined if a literal is not near the segment in its place, or a value holds a verb. */
function fill(sent: readonly string[], template: readonly Segment[]): string | undefined {
  const segments: string[] = []
  for (const [index, segment] of template.entries()) {
    const given = sent[index] ?? ''
    const known = segment.kind === 'literal' ? findNearestName(given, [segment.text]) : valueIn(given)
    if (known === undefined) return undefined
    segments.push(known)
  }
  return `/${segments.join('/')}`
}

/** A value; undefined if it ends with a verb, which the template does not have. */
function valueIn(given: string): string | undefined {
  return /:|%3a/i.test(given) ? undefined : given
}
