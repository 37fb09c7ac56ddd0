import { TranscodingError } from '../errors/transcoding-error.ts'
import { decodeSegment, decodeSegments, isEncoded } from './percent-decoding.ts'
import { type PathTemplate, patternOf, segmentText, type TemplateVariable } from './template-parser.ts'

/** The value of a variable of the template, decoded once. */
export interface PathVariable {
  readonly fieldPath: string
  readonly value: string
}

export type RouteMatch<T> =
  | { readonly kind: 'match'; readonly route: T; readonly variables: readonly PathVariable[] }
  | { readonly kind: 'not_found' }
  /** The path exists for these methods only; sorted, with HEAD where GET is one. */
  | { readonly kind: 'method_not_allowed'; readonly allow: readonly string[] }
  /** The path has a malformed escape or is not UTF-8. */
  | { readonly kind: 'malformed'; readonly error: TranscodingError }

export interface RouteEntry<T> {
  /** An HTTP method, or `*` for every method that has no route of its own on the path. */
  readonly httpMethod: string
  readonly template: PathTemplate
  readonly route: T
}

/** Two routes that match the same requests. Thrown at start-up. */
export class DuplicateRouteError extends Error {
  override readonly name = 'DuplicateRouteError'

  constructor(httpMethod: string, template: PathTemplate) {
    super(`two routes match ${httpMethod} ${patternOf(template)}`)
  }
}

/**
 * Builds a router. The most specific route wins, whatever the order of the entries: one with a verb before one without; then,
 * segment by segment from the left, a literal before `*` before `**`, with backtracking; among routes with `**`, the one with more
 * literals after it.
 *
 * Paths are matched as sent: `a%2Fb` is one segment, a colon begins a verb only if a route declares that verb, an empty segment
 * matches nothing, and captured values are decoded once.
 *
 * @throws DuplicateRouteError
 */
export function createRouter<T>(entries: Iterable<RouteEntry<T>>) {
  const byMethod = new Map<string, RoutesOfMethod<T>>()
  for (const entry of entries) {
    const routes = byMethod.get(entry.httpMethod) ?? []
    byMethod.set(entry.httpMethod, routes)
    insert(routes, entry)
  }

  function find(httpMethod: string, path: Path): Found<T> | undefined {
    return findInMethod(byMethod.get(httpMethod) ?? [], path) ?? findInMethod(byMethod.get('*') ?? [], path)
  }

  return {
    /**
     * Finds the route of a request.
     *
     * @param rawPath - the path of the request target as it was sent, without the query
     */
    match(httpMethod: string, rawPath: string): RouteMatch<T> {
      const needsDecoding = isEncoded(rawPath)
      const malformed = needsDecoding ? findMalformed(rawPath) : undefined
      if (malformed !== undefined) return { kind: 'malformed', error: malformed }
      const segments = splitPath(rawPath)
      if (segments === undefined) return { kind: 'not_found' }
      const path: Path = { segments, decode: needsDecoding ? decodeSegment : asItIs }

      const found = find(httpMethod, path) ?? (httpMethod === 'HEAD' ? find('GET', path) : undefined)
      if (found !== undefined) return { kind: 'match', route: found.leaf.route, variables: capture(found) }

      const allow = new Set([...byMethod].filter(([, routes]) => findInMethod(routes, path)).map(([method]) => method))
      if (allow.size === 0) return { kind: 'not_found' }
      if (allow.has('GET')) allow.add('HEAD')
      return { kind: 'method_not_allowed', allow: [...allow].toSorted() }
    },
  }
}

/** A path, split as it was sent. */
interface Path {
  readonly segments: readonly string[]
  /** Decodes a segment. Returns it unchanged if the whole path has nothing to decode, as nearly all paths. */
  readonly decode: (segment: string) => string
}

function asItIs(segment: string): string {
  return segment
}

/** A tree for each verb, with its colon: the longest verb first, and paths without a verb last. */
type RoutesOfMethod<T> = { readonly verb: string; readonly tree: Node<T> }[]

/** A node of the tree: the segments that may follow one prefix. */
interface Node<T> {
  readonly literals: Map<string, Node<T>>
  one: Node<T> | undefined
  /** Routes with `**` here, sorted by the number of literals after it, most first. */
  readonly any: { readonly suffix: readonly string[]; readonly leaf: Leaf<T> }[]
  leaf: Leaf<T> | undefined
}

interface Leaf<T> {
  readonly route: T
  readonly template: PathTemplate
}

interface Found<T> {
  readonly leaf: Leaf<T>
  /** Without the verb. */
  readonly path: Path
}

function newNode<T>(): Node<T> {
  return { literals: new Map<string, Node<T>>(), one: undefined, any: [], leaf: undefined }
}

function insert<T>(routes: RoutesOfMethod<T>, { httpMethod, template, route }: RouteEntry<T>): void {
  const verb = template.verb === '' ? '' : `:${template.verb}`
  let node = routes.find((each) => each.verb === verb)?.tree
  if (node === undefined) {
    node = newNode<T>()
    routes.push({ verb, tree: node })
    routes.sort((a, b) => b.verb.length - a.verb.length)
  }
  const leaf = { route, template }
  for (const [index, segment] of template.segments.entries()) {
    if (segment.kind === 'any') {
      const suffix = template.segments.slice(index + 1).map(segmentText)
      if (node.any.some((other) => sameTexts(other.suffix, suffix))) throw new DuplicateRouteError(httpMethod, template)
      node.any.push({ suffix, leaf })
      node.any.sort((a, b) => b.suffix.length - a.suffix.length)
      return
    }
    if (segment.kind === 'one') {
      node.one ??= newNode<T>()
      node = node.one
    } else {
      const next: Node<T> = node.literals.get(segment.text) ?? newNode<T>()
      node.literals.set(segment.text, next)
      node = next
    }
  }
  if (node.leaf !== undefined) throw new DuplicateRouteError(httpMethod, template)
  node.leaf = leaf
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index])
}

function findMalformed(rawPath: string): TranscodingError | undefined {
  try {
    decodeSegment(rawPath)
    return undefined
  } catch (error) {
    if (error instanceof TranscodingError) return error
    throw error
  }
}

/** Splits a path into its raw segments; undefined if one is empty, which no template matches. */
function splitPath(rawPath: string): readonly string[] | undefined {
  if (rawPath === '/') return []
  if (!rawPath.startsWith('/')) return undefined
  const segments = rawPath.slice(1).split('/')
  return segments.includes('') ? undefined : segments
}

function findInMethod<T>(routes: RoutesOfMethod<T>, path: Path): Found<T> | undefined {
  for (const { verb, tree } of routes) {
    const segments = withoutVerb(path.segments, verb)
    if (segments === undefined) continue
    const rest = { ...path, segments }
    const leaf = findFrom(tree, rest, 0)
    if (leaf !== undefined) return { leaf, path: rest }
  }
  return undefined
}

/** Removes the verb from the last segment; undefined if it is not there. The rest must not be empty, except for the path `/:verb`. */
function withoutVerb(segments: readonly string[], verb: string): readonly string[] | undefined {
  if (verb === '') return segments
  const last = segments.at(-1)
  if (last?.endsWith(verb) !== true) return undefined
  const rest = last.slice(0, -verb.length)
  const before = segments.slice(0, -1)
  if (rest !== '') return [...before, rest]
  return before.length === 0 ? [] : undefined
}

/** Each node of the tree has one prefix only, so the search visits no node twice. */
function findFrom<T>(node: Node<T>, path: Path, index: number): Leaf<T> | undefined {
  const segment = path.segments[index]
  if (segment === undefined) return node.leaf ?? findAny(node, path, index)
  const literal = node.literals.get(path.decode(segment))
  return (
    (literal && findFrom(literal, path, index + 1)) ??
    (node.one && findFrom(node.one, path, index + 1)) ??
    findAny(node, path, index)
  )
}

function findAny<T>(node: Node<T>, path: Path, index: number): Leaf<T> | undefined {
  return node.any.find(({ suffix }) => endsWithSegments(path, index, suffix))?.leaf
}

function endsWithSegments({ segments, decode }: Path, from: number, suffix: readonly string[]): boolean {
  const start = segments.length - suffix.length
  return start >= from && suffix.every((text, index) => text === decode(segments[start + index] ?? ''))
}

function capture<T>({ leaf, path }: Found<T>): readonly PathVariable[] {
  return leaf.template.variables.map((variable) => ({
    fieldPath: variable.fieldPath,
    value: captureOne(variable, path),
  }))
}

function captureOne({ start, end, multiSegment }: TemplateVariable, { segments, decode }: Path): string {
  const bound = (position: number) => (position < 0 ? segments.length + position + 1 : position)
  if (!multiSegment) return decode(segments[bound(start)] ?? '')
  return decodeSegments(segments.slice(bound(start), bound(end)).join('/'))
}
