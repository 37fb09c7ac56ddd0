import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { parseArgs } from 'node:util'
import { configHelp } from '../../config.ts'
import { isAccountName } from '../../domain/account.ts'
import { suggestName } from '../../domain/nearest.ts'

/** Exit codes: 0 success, 1 partial or complete failure, 2 wrong usage or configuration, 3 could not be decided, 4 and 5 of `chains status`, 130 stopped by a signal. */
export const EXIT_GOOD = 0
export const EXIT_FAILED = 1
export const EXIT_USAGE = 2
export const EXIT_UNDECIDED = 3
export const EXIT_NOT_FOLLOWED = 4
export const EXIT_FAILING = 5
export const EXIT_STOPPED = 130

/** How a process learns that it is to stop. */
export interface StopSignals {
  /** Fires at the first SIGTERM or SIGINT. */
  readonly signal: AbortSignal
  /**
   * Waits before a stop closes anything; the time that a stop may take begins afterwards. Ends early at a second signal, and at once where SIGINT
   * stops the process: somebody at a terminal waits.
   */
  readonly delayStop: (delayMs: number) => Promise<void>
}

/** What a command may use; it reads no globals. */
export interface CommandContext extends StopSignals {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly workingFolder: string
  readonly stdin: Readable
  /** For results only. */
  readonly stdout: Writable
  /** For messages and progress. */
  readonly stderr: Writable
  /** Who runs the command, `user@host`, for the audit log. */
  readonly actor: string
}

/** One command of the command line: `keys create`. */
export interface Command {
  readonly path: readonly string[]
  readonly summary: string
  /** What it takes, as a line of usage has it, and what that means: `FILE`, `--chain NAME`, `--json`; what may be left out in brackets, `[--json]`. */
  readonly takes?: Readonly<Record<string, string>>
  /** The environment variables that it reads. */
  readonly environment: readonly string[]
  /** Whether it runs until it is stopped, and logs what it does. */
  readonly isService?: true
  /** The exit code where the command throws; default 1. */
  readonly exitWhenThrown?: number
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

/** Whether somebody reads a stream as it is written. */
export function isTerminal(stream: Writable): boolean {
  return 'isTTY' in stream && stream.isTTY === true
}

/** `3 blocks`, `12,300 blocks` */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}

/** @returns whether the time since the last yes is over; the first answer is no */
export function everyMs(intervalMs: number): () => boolean {
  let lastMs = performance.now()
  return () => {
    if (performance.now() - lastMs < intervalMs) return false
    lastMs = performance.now()
    return true
  }
}

/** Writes a line for each of a list, and how many they are to standard error. */
export function writeList({ stdout, stderr }: CommandContext, lines: readonly string[], noun: string): void {
  for (const line of lines) stdout.write(`${line}\n`)
  stderr.write(`${counted(lines.length, noun)}\n`)
}

/** Parses the whole number in an option. @throws UsageError */
export function parseWhole(option: string, text = '', from = 0, to = 999_999_999_999_999): number {
  if (/^\d{1,15}$/.test(text) && Number(text) >= from && Number(text) <= to) return Number(text)
  throw new UsageError(`--${option} is "${text}": use a whole number from ${from} to ${to}`)
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
 * @throws UsageError for an unknown option, a missing one, too many or too few positionals
 */
export function parseWords(command: Command, words: readonly string[]): ParsedWords {
  const { options, positionals: wanted } = readTakes(command)
  const known = Object.fromEntries(
    options.map(({ name, value }) => [name, { type: value === undefined ? 'boolean' : 'string' } as const]),
  )
  const { values, positionals } = readWords(words, { ...known, help: { type: 'boolean', short: 'h' } })
  if (values.help === true) return { help: true }
  const missing = options.find(({ name, isOptional }) => !isOptional && values[name] === undefined)
  if (missing !== undefined) throw new UsageError(`--${missing.name} is missing`)
  const absent = wanted.filter(({ isOptional }) => !isOptional)[positionals.length]
  if (absent !== undefined) throw new UsageError(`${absent.text} is missing`)
  const surplus = positionals[wanted.length]
  if (surplus !== undefined) throw new UsageError(`"${surplus}" is not expected here`)
  const given = Object.entries(values).map(([name, value]) => [name, value === true ? '' : (value as string)])
  return { help: false, positionals, options: Object.fromEntries(given) }
}

/** Reads what a command takes: options with a value or, as switches, without one, and positionals. */
function readTakes({ takes = {} }: Command) {
  const all = Object.entries(takes).map(([usage, help]) => {
    const text = usage.replaceAll(/[[\]]/g, '')
    const [word = '', value] = text.split(' ')
    return { text, name: word.replace(/^--/, ''), value, help, isOptional: usage !== text }
  })
  const isOption = ({ text }: { text: string }) => text.startsWith('--')
  return { options: all.filter(isOption), positionals: all.filter((each) => !isOption(each)) }
}

type WordOptions = Record<string, { type: 'boolean' | 'string'; short?: string }>

function readWords(words: readonly string[], options: WordOptions) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true })
  } catch (error) {
    throw new UsageError(explainWords((error as Error).message, Object.keys(options)))
  }
}

/** For an unknown option Node explains how to pass it as a positional; what the user meant is nearly always another option. */
function explainWords(message: string, names: readonly string[]): string {
  const unknown = /^Unknown option '(-[^']*)'/.exec(message)
  if (unknown === null) return message
  const [fault, word = ''] = unknown
  const options = names.map((name) => `--${name}`)
  return `${fault}; ${suggestName(word, options)}`
}

/** The help text of one command. */
export function helpOf(command: Command): string {
  const { options, positionals } = readTakes(command)
  const variables = configHelp.filter(([name]) => command.environment.includes(name))
  const explained = (list: typeof options) => list.map(({ text, help }) => [text, help] as const)
  return [
    command.summary,
    `Usage: ${['waybill', ...command.path, ...Object.keys(command.takes ?? {})].join(' ')}`,
    table('Arguments', explained(positionals)),
    table('Options', [...explained(options), ['--help', 'show this text']]),
    table('Environment', variables),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

/** The help text of the whole command line. */
export function helpOfAll(commands: readonly Command[]): string {
  const lines = commands.map(({ path, summary }) => [path.join(' '), firstSentence(summary)] as const)
  return [
    'Waybill finds the routes by which a wallet can pay a request, and searches payments across chains.',
    'Usage: waybill COMMAND [OPTIONS]',
    table('Commands', lines),
    table('Environment', configHelp),
    'waybill COMMAND --help explains one command, waybill --version shows the release. Exit code: 0 success, 1 partial or complete failure, 2 wrong usage, 3 could not be decided, 130 stopped by a signal.',
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

/**
 * Writes a text or bytes, and waits while the reader is behind.
 *
 * @throws the stream's error, or Error when the reader is gone
 */
export async function writeFully(out: Writable, text: string | Uint8Array): Promise<void> {
  const gone = () => new Error('the reader of the output stopped before its end')
  const settled = new AbortController()
  try {
    if (out.errored) throw out.errored
    if (out.destroyed) throw gone()
    if (out.write(text)) return
    await Promise.race(['drain', 'close'].map((event) => once(out, event, { signal: settled.signal })))
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EPIPE' ? gone() : error
  } finally {
    settled.abort()
  }
}
