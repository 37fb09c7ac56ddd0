import type { Readable, Writable } from 'node:stream'
import { parseArgs } from 'node:util'
import { configHelp } from '../config.ts'
import { isAccountName } from '../domain/account.ts'
import { suggestName } from '../domain/nearest.ts'

/** What a command may use; it reads no globals. */
export interface CommandContext {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly workingFolder: string
  readonly stdin: Readable
  /** For results only. */
  readonly stdout: Writable
  /** For messages and progress. */
  readonly stderr: Writable
  /** Who runs the command, `user@host`, for the audit log. */
  readonly actor: string
  /** Fires when the process gets SIGTERM or SIGINT. */
  readonly signal: AbortSignal
}

/** An option with a value, or a switch without. */
interface CommandOption {
  readonly name: string
  /** Placeholder of the value in the help; absent for a switch. */
  readonly value?: string
  readonly help: string
  readonly required?: boolean
}

/** One command of the command line: `keys create`. */
export interface Command {
  readonly path: readonly string[]
  readonly summary: string
  /** Optional ones last. */
  readonly positionals?: readonly { readonly name: string; readonly help: string; readonly optional?: boolean }[]
  readonly options?: readonly CommandOption[]
  /** The environment variables that it reads. */
  readonly environment: readonly string[]
  /** @returns the exit code: 0 for success, 1 for partial or complete failure, 3 where something could not be decided */
  run(input: CommandInput, context: CommandContext): Promise<number>
}

export interface CommandInput {
  readonly positionals: readonly string[]
  /** Values by option name; a switch has the value ''. */
  readonly options: Readonly<Record<string, string | undefined>>
}

/** The command line is not valid; exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Parses the number of a block in an option. @throws UsageError */
export function parseBlock(option: string, text = ''): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new UsageError(`--${option} is "${text}", which is not a block number: use a whole number`)
}

/**
 * Checks the account name in an option.
 *
 * @throws UsageError when it has the wrong form
 */
export function parseAccountName(name = ''): string {
  if (isAccountName(name)) return name
  throw new UsageError(
    `"${name}" is not an account: use 1 to 64 of a-z, 0-9, ., _ and -, beginning with a letter or digit`,
  )
}

/** The parsed arguments of a command. */
type ParsedWords = { readonly help: true } | ({ readonly help: false } & CommandInput)

/**
 * Parses the arguments of a command by its declaration.
 *
 * @throws UsageError for an unknown or repeated option, a missing one, too many or too few positionals
 */
export function parseWords(command: Command, words: readonly string[]): ParsedWords {
  const declared = command.options ?? []
  const options = Object.fromEntries(
    declared.map(({ name, value }) => [name, { type: value === undefined ? 'boolean' : 'string' } as const]),
  )
  const { values, positionals, tokens } = readWords(words, { ...options, help: { type: 'boolean', short: 'h' } })
  if (values.help === true) return { help: true }
  refuseRepeats(tokens)
  const missing = declared.find(({ name, required }) => required === true && values[name] === undefined)
  if (missing !== undefined) throw new UsageError(`--${missing.name} is missing`)
  const wanted = command.positionals ?? []
  const absent = wanted.filter(({ optional }) => optional !== true)[positionals.length]
  if (absent !== undefined) throw new UsageError(`${absent.name} is missing`)
  const surplus = positionals[wanted.length]
  if (surplus !== undefined) throw new UsageError(`"${surplus}" is not expected here`)
  const given = Object.entries(values).map(([name, value]) => [name, value === true ? '' : (value as string)])
  return { help: false, positionals, options: Object.fromEntries(given) }
}

type WordOptions = Record<string, { type: 'boolean' | 'string'; short?: string }>

function readWords(words: readonly string[], options: WordOptions) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true, strict: true, tokens: true })
  } catch (error) {
    throw new UsageError(explainWords((error as Error).message, Object.keys(options)))
  }
}

/** For an unknown option Node explains how to pass it as a positional; what the user meant is nearly always another option. */
function explainWords(message: string, names: readonly string[]): string {
  const unknown = /^Unknown option '(-[^']*)'/.exec(message)
  if (unknown === null) return message
  const [fault, word = ''] = unknown
  return `${fault}; ${suggestName(
    word,
    names.map((name) => `--${name}`),
  )}`
}

function refuseRepeats(tokens: readonly { kind: string; name?: string }[]): void {
  const seen = new Set<string>()
  for (const { kind, name = '' } of tokens) {
    if (kind === 'option' && seen.has(name)) throw new UsageError(`--${name} is given twice`)
    if (kind === 'option') seen.add(name)
  }
}

/** The help text of one command. */
export function helpOf(command: Command): string {
  const positionals = command.positionals ?? []
  const options = command.options ?? []
  const usage = [
    `waybill ${command.path.join(' ')}`,
    ...positionals.map(({ name, optional }) => (optional === true ? `[${name}]` : name)),
    ...options.map(({ name, value, required }) => {
      const text = value === undefined ? `--${name}` : `--${name} ${value}`
      return required === true ? text : `[${text}]`
    }),
  ].join(' ')
  const variables = configHelp.filter(([name]) => command.environment.includes(name))
  return [
    command.summary,
    `Usage: ${usage}`,
    table(
      'Arguments',
      positionals.map(({ name, help }) => [name, help]),
    ),
    table('Options', [
      ...options.map(
        ({ name, value, help }) => [value === undefined ? `--${name}` : `--${name} ${value}`, help] as const,
      ),
      ['--help', 'show this text'],
    ]),
    table('Environment', variables),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

/** The help text of the whole command line. */
export function helpOfAll(commands: readonly Command[]): string {
  return [
    'Waybill finds the routes by which a wallet can pay a request, and searches payments across chains.',
    'Usage: waybill COMMAND [OPTIONS]',
    table(
      'Commands',
      commands.map(({ path, summary }) => [path.join(' '), firstSentence(summary)]),
    ),
    table('Environment', configHelp),
    'waybill COMMAND --help explains one command. Exit code: 0 success, 1 partial or complete failure, 2 wrong usage, 3 could not be decided, 130 stopped by a signal.',
  ].join('\n\n')
}

function firstSentence(text: string): string {
  return text.replace(/[.:] .*$/, '.')
}

function table(title: string, rows: readonly (readonly [name: string, meaning: string])[]): string {
  if (rows.length === 0) return ''
  const width = Math.max(...rows.map(([name]) => name.length)) + 2
  return [`${title}:`, ...rows.map(([name, meaning]) => `  ${name.padEnd(width)}${meaning}`)].join('\n')
}
