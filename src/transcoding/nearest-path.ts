import { findNearestName } from './nearest-name.ts'
import type { PathTemplate, Segment } from './template-parser.ts'

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

function candidatesBy({ segments, verb }: PathTemplate, sent: readonly string[]): readonly (string | undefined)[] {
  if (verb === '') return alignments(sent, segments).map((aligned) => fill(aligned, segments))
  const [path, sentVerb] = cutVerb(sent)
  if (findNearestName(sentVerb, [verb]) === undefined) return []
  return alignments(path, segments).map((aligned) => {
    const filled = fill(aligned, segments)
    return filled && `${filled}:${verb}`
  })
}

/** What stands before the colon in the last segment, and behind it. */
function cutVerb(sent: readonly string[]): readonly [path: readonly string[], verb: string] {
  const [last = '', ...verb] = sent.at(-1)?.split(/:|%3a/i) ?? []
  return [[...sent.slice(0, -1), last], verb.join(':')]
}

/** The ways to give what was sent as many segments as the template has: as it is, with one literal more, with one less. */
function alignments(sent: readonly string[], template: readonly Segment[]): readonly (readonly string[])[] {
  if (sent.length === template.length) return [sent]
  if (sent.length === template.length - 1) {
    return template.flatMap((segment, at) => (segment.kind === 'literal' ? [sent.toSpliced(at, 0, segment.text)] : []))
  }
  if (sent.length === template.length + 1) return sent.map((_, at) => sent.toSpliced(at, 1))
  return []
}

/** The path by the template, where every literal is near what was sent in its place. */
function fill(sent: readonly string[], template: readonly Segment[]): string | undefined {
  const segments: string[] = []
  for (const [index, segment] of template.entries()) {
    const given = sent[index] ?? ''
    const known = segment.kind === 'literal' ? findNearestName(given, [segment.text]) : given
    if (known === undefined) return undefined
    segments.push(known)
  }
  return `/${segments.join('/')}`
}
