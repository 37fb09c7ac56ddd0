/**
 * Words of our own that a newcomer would need a glossary for: code, file names and documents use the field's words instead. Plain English uses
 * are listed.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CheckResult, readGit, root } from './run-command.ts'

const PRIVATE = new Set(
  'room rooms house look looks wish wishes turn turns told shape shapes liar liars twin twins cell cells'.split(' '),
)

/** Plain uses: phrasal verbs, cells of a table, names that others gave. */
const PLAIN = [
  /look-?alike/gi,
  /\blooks? (?:up|for|at|like|into|again|back|the \w+ up|them up|these up|it up|each up|this)\b/gi,
  /\bturns? (?:out|off|on|an? |the |it |what|whatever|every|logs|into|raw|rows)/gi,
  /\bMessage(?:Init)?Shape\b/g,
  /cells?/gi,
]

const CHECKED = /^(?:src|apps|demo|clients|test|tools|bench|docs|proto)\/.*\.(?:tsx?|css|sql|proto|md)$|^[A-Z]+\.md$/
const EXCEPT =
  /^(?:clients\/typescript\/gen|test\/cases)\/|^tools\/check-words|^CHANGELOG\.md$|^bench\/(?:LOG|SEARCH)\.md$/

export async function checkWords(): Promise<CheckResult> {
  const listed = (await readGit(root, 'ls-files', '--cached', '--others', '--exclude-standard')) ?? ''
  const paths = listed.split('\n').filter((path) => CHECKED.test(path) && !EXCEPT.test(path))
  const faults = paths.flatMap((path) => [
    ...findWords(path).map(({ word }) => `${path}: the name has "${word}"`),
    ...findWords(readFileSync(join(root, path), 'utf8')).map(({ word, line }) => `${path}:${line}: "${word}"`),
  ])
  return { outcome: faults.length === 0 ? 'ok' : 'failed', output: faults.join('\n') }
}

/** @returns each private word of a text, also as a part of an identifier (`createLookReader`), with its line */
export function findWords(text: string): readonly { readonly word: string; readonly line: number }[] {
  return text.split('\n').flatMap((line, index) => {
    const left = PLAIN.reduce((rest, plain) => rest.replaceAll(plain, ''), line)
    const parts = left.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? []
    return parts.filter((part) => PRIVATE.has(part.toLowerCase())).map((word) => ({ word, line: index + 1 }))
  })
}
