/**
 * Reads imports and literals from TypeScript source without a parser, because TypeScript 7 has no compiler API. A small scanner separates
 * code, comments and string literals; the rest is patterns over the code.
 */

/** An import, export-from or import() of one module. `line` counts from 1. */
export type SourceImport = { readonly specifier: string; readonly line: number; readonly typeOnly: boolean }

/** A string or template literal: its text without quotes, and the line on which it begins. */
export type SourceLiteral = { readonly text: string; readonly line: number }

export type SourceScan = {
  readonly imports: readonly SourceImport[]
  readonly literals: readonly SourceLiteral[]
  /** The source with comments blanked and each literal replaced by its number in quotes; lines are kept. */
  readonly code: string
}

type Piece = { readonly kind: 'code' | 'comment' | 'literal'; readonly text: string }

/** @throws Error when a literal or comment is not closed, which is impossible in a file that compiles */
export function scanSource(source: string): SourceScan {
  const literals: SourceLiteral[] = []
  let code = ''
  let line = 1
  for (const { kind, text } of splitSource(source)) {
    const newlines = text.replaceAll(/[^\n]/g, '')
    if (kind === 'code') code += text
    else if (kind === 'comment') code += newlines || ' '
    else code += `"${literals.push({ text: text.slice(1, -1), line }) - 1}"${newlines}`
    line += newlines.length
  }
  return { imports: findImports(code, literals), literals, code }
}

const importStatement =
  /^(?:import|export)\s(?:[\w*{}\s,$]*?\sfrom\s)?['"][^'"]+['"]|\bimport\(\s*['"][^'"]+['"]\s*\)/gm

/** Of a file with JSX, whose texts the scanner would take for code, the imports alone, each on its line. */
export function importsAlone(source: string): string {
  let kept = ''
  for (const { index, 0: statement } of source.matchAll(importStatement)) {
    kept += blank(source.slice(kept.length, index)) + statement
  }
  return kept + blank(source.slice(kept.length))
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ')
}

/**
 * Statements as biome prints them: `import … from "n"`, `export … from "n"`, `import "n"`, and `import("n")` anywhere.
 * `import { type A }` is type-only when every name is; else verbatimModuleSyntax keeps the import.
 */
function findImports(code: string, literals: readonly SourceLiteral[]): SourceImport[] {
  const pattern =
    /^(?:import|export)\s+(?:(type)\s+)?(?:([\w*${}\s,]+?)\s*from\s*)"(\d+)"|^import\s*"(\d+)"|(\btypeof\s+)?\bimport\(\s*"(\d+)"/gm
  return [...code.matchAll(pattern)].map((match) => {
    const [, typeWord, names, from, bare, typeQuery, dynamic] = match
    const literal = literals[Number(from ?? bare ?? dynamic)]!
    return { specifier: literal.text, line: literal.line, typeOnly: Boolean(typeWord ?? typeQuery) || allTypes(names) }
  })
}

function allTypes(names: string | undefined): boolean {
  const list = /^\{(.*)\}$/s.exec(names?.trim() ?? '')?.[1]
  if (list === undefined) return false
  const parts = list.split(',').map((name) => name.trim())
  return parts.filter((name) => name !== '').every((name) => name.startsWith('type '))
}

function splitSource(source: string): Piece[] {
  const pieces: Piece[] = []
  let codeStart = 0
  let at = 0
  const push = (kind: Piece['kind'], end: number) => {
    if (at > codeStart) pieces.push({ kind: 'code', text: source.slice(codeStart, at) })
    pieces.push({ kind, text: source.slice(at, end) })
    at = codeStart = end
  }
  while (at < source.length) {
    const two = source.slice(at, at + 2)
    const one = two[0]!
    if (two === '//') push('comment', indexOrEnd(source, '\n', at))
    else if (two === '/*') push('comment', indexAfter(source, '*/', at + 2))
    else if (one === '"' || one === "'") push('literal', quotedEnd(source, at, one))
    else if (one === '`') push('literal', templateEnd(source, at))
    else if (one === '/' && startsRegExp(source, at)) at = regExpEnd(source, at)
    else at += 1
  }
  if (at > codeStart) pieces.push({ kind: 'code', text: source.slice(codeStart, at) })
  return pieces
}

function quotedEnd(source: string, start: number, quote: string): number {
  for (let at = start + 1; at < source.length; at += 1) {
    if (source[at] === '\\') at += 1
    else if (source[at] === quote) return at + 1
  }
  throw unclosed('string', source, start)
}

/** A template with its substitutions is one literal; templates within `${}` are skipped as a whole. */
function templateEnd(source: string, start: number): number {
  for (let at = start + 1; at < source.length; at += 1) {
    if (source[at] === '\\') at += 1
    else if (source[at] === '`') return at + 1
    else if (source.startsWith('${', at)) at = substitutionEnd(source, at + 2) - 1
  }
  throw unclosed('template', source, start)
}

function substitutionEnd(source: string, start: number): number {
  let depth = 1
  let at = start
  while (at < source.length) {
    const one = source[at]!
    if (one === '"' || one === "'") at = quotedEnd(source, at, one)
    else if (one === '`') at = templateEnd(source, at)
    else if (one === '/' && startsRegExp(source, at)) at = regExpEnd(source, at)
    else {
      if (one === '{') depth += 1
      if (one === '}') depth -= 1
      at += 1
      if (depth === 0) return at
    }
  }
  throw unclosed('substitution', source, start)
}

/** A slash divides after a value and begins an expression after an operator, a bracket or a keyword. */
function startsRegExp(source: string, at: number): boolean {
  const before = source.slice(Math.max(0, at - 40), at).trimEnd()
  return before === '' || /[(,=:[!&|?{};+*%<>~^-]$|\b(?:return|typeof|case|in|of|await|throw|yield)$/.test(before)
}

function regExpEnd(source: string, start: number): number {
  let inClass = false
  for (let at = start + 1; at < source.length; at += 1) {
    const one = source[at]
    if (one === '\\') at += 1
    else if (one === '[') inClass = true
    else if (one === ']') inClass = false
    else if (one === '\n') throw unclosed('regular expression', source, start)
    else if (one === '/' && !inClass) return at + 1
  }
  throw unclosed('regular expression', source, start)
}

function indexOrEnd(source: string, text: string, from: number): number {
  const index = source.indexOf(text, from)
  return index === -1 ? source.length : index
}

function indexAfter(source: string, text: string, from: number): number {
  const index = source.indexOf(text, from)
  if (index === -1) throw unclosed('comment', source, from)
  return index + text.length
}

function unclosed(what: string, source: string, at: number): Error {
  return new Error(`the ${what} on line ${source.slice(0, at).split('\n').length} is not closed`)
}
