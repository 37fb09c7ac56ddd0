import { findNearestName } from '../../domain/nearest.ts'
import type { PathTemplate, Segment } from '../../transcoding/paths/template-parser.ts'

/** Takes away the slashes at the end of a path and those that stand doubled. */
export function trimSlashes(rawPath: string): string {
  return `/${segmentsOf(rawPath).join('/')}`
}

/**
 * Finds the path that was most likely meant by one that no route has: with a segment of a template missing, too many or
 * mistyped, or a verb. What stands where the template has a variable is kept as it was sent.
 *
 * @param templates - those with `**` are left out
 * @returns undefined when none is near
 */
export function findNearestPath(rawPath: string, templates: readonly PathTemplate[]): string | undefined {
  const sent = segmentsOf(rawPath)
  const candidates = templates
    .filter(({ segments }) => segments.every(({ kind }) => kind !== 'any'))
    .flatMap((template) => candidatesBy(template, sent))
    .filter((candidate) => candidate !== undefined)
  return findNearestName(trimSlashes(rawPath), candidates)
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

/** What of a template is its own, as against the values that it holds. */
function lengthOfLiterals({ segments, verb }: PathTemplate): number {
  return segments.reduce((sum, segment) => sum + (segment.kind === 'literal' ? segment.text.length : 0), verb.length)
}

/** What stands before the colon in the last segment, and behind it. */
function cutVerb(sent: readonly string[]): readonly [path: readonly string[], verb: string] {
  const [last = '', ...verb] = sent.at(-1)?.split(/:|%3a/i) ?? []
  return [[...sent.slice(0, -1), last], verb.join(':')]
}

/**
 * The ways to give what was sent as many segments as the template has: as it is, with one literal more, with one segment less. Such a segment
 * counts as an edit, and is at most as long as the edits that are allowed; a plain word is then no value of a variable.
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

/** The path by the template, where every literal is near what was sent in its place, and no value holds a verb. */
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

/** undefined where a verb stands behind it, which the template has not. */
function valueIn(given: string): string | undefined {
  return /:|%3a/i.test(given) ? undefined : given
}

/**
 * Finds the path that was most likely meant among some without variables: one with as many segments, each near what was sent in its place.
 *
 * @returns undefined when none is near
 */
export function findNearestLiteralPath(rawPath: string, paths: Iterable<string>): string | undefined {
  const sent = segmentsOf(rawPath)
  const near = [...paths].filter((path) => {
    const segments = segmentsOf(path)
    return segments.length === sent.length && segments.every((text, at) => findNearestName(sent[at] ?? '', [text]))
  })
  return findNearestName(trimSlashes(rawPath), near)
}
