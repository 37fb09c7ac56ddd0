/**
 * The list of places that still break a rule of the house: tools/house/house-exceptions.json, by rule and name, with the largest size
 * allowed. It only shrinks: mended places are removed, and none is added.
 */
import type { Finding } from './house-rules.ts'

/** Rule → name → the largest size allowed. */
export type Exceptions = Readonly<Record<string, Readonly<Record<string, number>>>>

export const EXCEPTIONS_FILE = 'tools/house/house-exceptions.json'

/** @returns a line for each finding that is not listed and each exception that is no longer needed; empty when there are none */
export function judge(findings: readonly Finding[], exceptions: Exceptions): string[] {
  const found = new Set(findings.map(({ rule, name }) => keyOf(rule, name)))
  const broken = findings.flatMap(({ rule, name, size, message }) => {
    const allowed = exceptions[rule]?.[name]
    if (allowed === undefined) return [message]
    return size > allowed ? [`${message} (${EXCEPTIONS_FILE} allows ${allowed} and is not to be raised)`] : []
  })
  const stale = entriesOf(exceptions)
    .filter(({ rule, name }) => !found.has(keyOf(rule, name)))
    .map(({ rule, name }) => `${EXCEPTIONS_FILE}: ${rule}: "${name}" breaks the rule no longer: npm run house:prune`)
  return [...broken, ...stale]
}

/** @returns the list without mended places, and with lower numbers where a place became smaller */
export function prune(exceptions: Exceptions, findings: readonly Finding[]): Exceptions {
  const sizes = new Map(findings.map(({ rule, name, size }) => [keyOf(rule, name), size]))
  const kept = entriesOf(exceptions).flatMap(({ rule, name, size }) => {
    const now = sizes.get(keyOf(rule, name))
    return now === undefined ? [] : [{ rule, name, size: Math.min(size, now) }]
  })
  return Object.fromEntries(
    [...Map.groupBy(kept, ({ rule }) => rule)].map(([rule, entries]) => [
      rule,
      Object.fromEntries(entries.map(({ name, size }) => [name, size])),
    ]),
  )
}

/**
 * @param before - the list of the commit that this work began from
 * @returns a line for each exception that is new or larger. One that only moved is neither: the last word of its
 *   name, a file or function, was listed under a path that no longer exists
 */
export function findAdditions(before: Exceptions, now: Exceptions): string[] {
  return entriesOf(now).flatMap(({ rule, name, size }) => {
    const gone = Object.entries(before[rule] ?? {}).filter(([former]) => now[rule]?.[former] === undefined)
    const allowed = before[rule]?.[name] ?? gone.find(([former]) => lastWord(former) === lastWord(name))?.[1]
    if (allowed === undefined) return [`${rule}: "${name}" is new in ${EXCEPTIONS_FILE}: mend it instead`]
    return size > allowed ? [`${rule}: "${name}" was raised from ${allowed} to ${size} in ${EXCEPTIONS_FILE}`] : []
  })
}

function entriesOf(exceptions: Exceptions) {
  return Object.entries(exceptions).flatMap(([rule, names]) =>
    Object.entries(names).map(([name, size]) => ({ rule, name, size })),
  )
}

function keyOf(rule: string, name: string): string {
  return `${rule}\n${name}`
}

function lastWord(name: string): string {
  return name.split(/[/ ]/).at(-1)!
}
