/**
 * Removes each part of each filter of payments from a copy of the tree, one at a time, and checks that `src/` does not compile without it. A
 * part is the filter's entry in the table of filters, its field in one of the four requests of `proto/` (with the code generated from it), the
 * enum that its numbers come from, or the case of its kind where filters are parsed and made into SQL.
 *
 *   npm run try:filters             all filters; some minutes
 *   npm run try:filters -- NAME…    these filters
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FilterField, filterFields } from '../../src/search/filter/search-fields.ts'
import { readGit, root, runCommand } from '../run-command.ts'

const TABLE = 'src/search/filter/search-fields.ts'
const PARSING = 'src/search/filter/parse-filter.ts'
const SQL = 'src/search/sql/filter-conditions.ts'
const SENT = 'src/api/services/payment-filter-input.ts'
const REQUESTS = ['SearchPaymentsRequest', 'SummarizePaymentsRequest', 'ExportPaymentsRequest', 'WatchPaymentsRequest']

/** A part of a filter: the file that has it, and the file without it. */
interface Part {
  readonly name: string
  readonly path: string
  /** @returns the same text where it does not have the part */
  readonly remove: (text: string) => string
}

function partsOf(field: FilterField): Part[] {
  const { name, kind } = field
  const entry: Part = { name: `${name}: entry of the table`, path: TABLE, remove: (text) => withoutEntry(text, name) }
  const isExclusion = kind === 'exclusion'
  const messages = isExclusion ? ['PaymentExclusion'] : REQUESTS
  const fields = messages.map((message) => ({
    name: `${name}: field of ${message}`,
    path: `proto/payments/v1/${isExclusion ? 'payment_exclusion' : 'payment_search_service'}.proto`,
    remove: (text: string) => withoutProtoField(text, message, name.replace('exclude.', '')),
  }))
  const isEnum = kind === 'list' && field.value.read === 'enum'
  const numbers = { name: `${name}: its enum`, path: SENT, remove: (text: string) => withoutEnum(text, name) }
  return [entry, ...fields, ...(isEnum ? [numbers] : [])]
}

/** The cases of each kind: the functions that switch over kinds. */
function casesOf(kind: FilterField['kind']): Part[] {
  const functions = [
    [PARSING, 'readFilter'],
    [SQL, 'conditionOf'],
    [SQL, 'columnsOf'],
  ] as const
  return functions.map(([path, of]) => ({
    name: `kind ${kind}: case of ${of}`,
    path,
    remove: (text) => withoutCase(text, of, kind),
  }))
}

function withoutEntry(text: string, name: string): string {
  return text.replace(
    new RegExp(`^ {2}'?${name.replace('.', '\\.')}'?: \\{(?: .* \\},\\n|\\n(?: {4}.*\\n)+ {2}\\},\\n)`, 'm'),
    '',
  )
}

function withoutEnum(text: string, name: string): string {
  return text.replace(new RegExp(`^ {2}${name}: new Map.*\\n`, 'm'), '')
}

/** Without the field and its comment. */
function withoutProtoField(text: string, message: string, name: string): string {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  const [before, after] = splitAt(text, text.indexOf(`message ${message} {`))
  const field = new RegExp(
    `(?:^ {2}//.*\\n)*^ {2}(?:optional|repeated) \\S+ ${snake} = \\d+(?:;| \\[[^;]*\\];)\\n`,
    'm',
  )
  return before + after.replace(field, '')
}

/** Without the label of the case, and without its statements unless the next or the last label shares them. */
function withoutCase(text: string, of: string, kind: string): string {
  const [before, after] = splitAt(text, text.indexOf(`function ${of}(`))
  const lines = after.split('\n')
  const at = lines.findIndex((line) => line.trim() === `case '${kind}':` || line.trim() === `case '${kind}': {`)
  const indent = (lines[at] ?? '').search(/\S/)
  const isLabel = (line = '') => line.startsWith('case ', indent)
  const isAfter = (line: string) => isLabel(line) || line.search(/\S/) < indent
  const isShared = isLabel(lines[at + 1]) || isLabel(lines[at - 1])
  const end = isShared ? at + 1 : lines.findIndex((line, nth) => nth > at && line !== '' && isAfter(line))
  return at < 0 ? text : before + [...lines.slice(0, at), ...lines.slice(end)].join('\n')
}

function splitAt(text: string, at: number): readonly [string, string] {
  return [text.slice(0, at), text.slice(at)]
}

const folder = mkdtempSync(join(tmpdir(), 'waybill-filters-'))
const project = join(folder, 'try-filters.json')

async function copyTree(): Promise<void> {
  const files = (await readGit(root, 'ls-files', '--cached', '--others', '--exclude-standard')) ?? ''
  const isNeeded = (path: string) => /^(?:src|gen|proto|proto_vendor|clients|tools)\/|^[^/]+\.(?:json|yaml)$/.test(path)
  for (const path of files.split('\n').filter(isNeeded)) cpSync(join(root, path), join(folder, path))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const compilerOptions = { incremental: true, tsBuildInfoFile: join(folder, 'types.json') }
  writeFileSync(
    project,
    JSON.stringify({
      extends: './tsconfig.json',
      compilerOptions,
      include: ['src/api', 'src/search'],
      exclude: ['**/*.test.ts'],
    }),
  )
}

/** @returns the errors of types in `src/`. What is left unused, or no syntax, says nothing: only the removal made it so. */
async function typeErrors(): Promise<string[]> {
  const { output } = await runCommand('tsc', ['--project', project], folder)
  return output.split('\n').filter((line) => /^src\/.*error TS(?!6133:|6196:|1\d{3}:)/.test(line))
}

async function generate(): Promise<void> {
  const { outcome, output } = await runCommand('buf', ['generate'], folder)
  if (outcome !== 'ok') throw new Error(output)
}

/** Tries the tree without a part. @returns whether it does not compile */
async function isNoticed({ name, path, remove }: Part): Promise<boolean> {
  const file = join(folder, path)
  const whole = readFileSync(file, 'utf8')
  const without = remove(whole)
  if (without === whole) throw new Error(`${name}: ${path} does not have it in the expected form`)
  writeFileSync(file, without)
  if (path.endsWith('.proto')) await generate()
  const [error] = await typeErrors()
  writeFileSync(file, whole)
  if (path.endsWith('.proto')) await generate()
  console.log(`${error === undefined ? 'NOT NOTICED' : 'noticed'}  ${name}${error === undefined ? '' : `: ${error}`}`)
  return error !== undefined
}

async function main(names: readonly string[]): Promise<boolean> {
  const chosen = filterFields.filter(({ name }) => names.length === 0 || names.includes(name))
  if (chosen.length < names.length)
    throw new Error(`the filters are: ${filterFields.map(({ name }) => name).join(', ')}`)
  await copyTree()
  const errors = await typeErrors()
  if (errors.length > 0) throw new Error(`the tree has errors of types:\n${errors.join('\n')}`)
  const kinds = new Set(chosen.map(({ kind }) => kind))
  const results: boolean[] = []
  for (const part of [...[...kinds].flatMap(casesOf), ...chosen.flatMap(partsOf)]) results.push(await isNoticed(part))
  console.log(`${results.filter(Boolean).length} of ${results.length} parts are noticed`)
  return results.every(Boolean)
}

try {
  process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
