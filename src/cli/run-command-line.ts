import { hostname, userInfo } from 'node:os'
import packageFile from '../../package.json' with { type: 'json' }
import { ConfigError } from '../config.ts'
import { listNames, suggestName } from '../domain/nearest.ts'
import { NotInstalledError } from '../errors/not-installed-error.ts'
import {
  type Command,
  type CommandContext,
  EXIT_FAILED,
  EXIT_GOOD,
  EXIT_USAGE,
  helpOf,
  helpOfAll,
  isTerminal,
  parseWords,
  UsageError,
} from './shared/command.ts'

/**
 * Runs the command that the arguments name.
 *
 * @param words - the arguments after the program's name
 * @returns the exit code
 */
export async function runCommandLine(
  commands: readonly Command[],
  words: readonly string[],
  context: CommandContext,
): Promise<number> {
  const command = findCommand(commands, words)
  if (command === undefined) return explainCommands(commands, words, context)
  const rest = words.slice(command.path.length)
  try {
    const input = parseWords(command, rest)
    if (!input.help) return await command.run(input, context)
    context.stdout.write(`${helpOf(command)}\n`)
    return EXIT_GOOD
  } catch (error) {
    if (error instanceof UsageError) {
      context.stderr.write(`waybill ${command.path.join(' ')}: ${error.message}\n\n${helpOf(command)}\n`)
      return EXIT_USAGE
    }
    if (command.isService === true && !isTerminal(context.stderr)) return await logFault(error, context)
    if (error instanceof ConfigError) {
      context.stderr.write(`waybill ${command.path.join(' ')}: the configuration is wrong\n`)
      for (const fault of error.faults) context.stderr.write(`- ${fault}\n`)
      return EXIT_USAGE
    }
    context.stderr.write(`waybill ${command.path.join(' ')}: ${await explain(error)}\n`)
    return error instanceof NotInstalledError ? EXIT_USAGE : (command.exitWhenThrown ?? EXIT_FAILED)
  }
}

/** What reads the log of a service reads the faults of its start there as well. @returns the exit code */
async function logFault(error: unknown, { stderr }: CommandContext): Promise<number> {
  const { createLogger } = await import('../observability/create-logger.ts')
  const logger = createLogger({ level: 'info', stream: stderr })
  if (error instanceof ConfigError) {
    logger.fatal({ faults: error.faults }, 'the configuration is wrong')
    return EXIT_USAGE
  }
  logger.fatal({ reason: await explain(error) }, 'the process ends')
  return error instanceof NotInstalledError ? EXIT_USAGE : EXIT_FAILED
}

function findCommand(commands: readonly Command[], words: readonly string[]): Command | undefined {
  return commands.find(({ path }) => path.every((word, i) => words[i] === word))
}

function explainCommands(commands: readonly Command[], words: readonly string[], context: CommandContext): number {
  const [first = ''] = words
  if (first === '--version' || first === '-V') {
    context.stdout.write(`${packageFile.version}\n`)
    return EXIT_GOOD
  }
  const asked = words.filter((word) => !word.startsWith('-')).slice(0, 2)
  const within = commands.filter(({ path }) => path[0] === asked[0])
  const wantsHelp = words.length === 0 || words.includes('--help') || words.includes('-h')
  if (wantsHelp && (asked.length === 0 || within.length > 0)) {
    context.stdout.write(`${helpOfAll(asked.length === 0 ? commands : within)}\n`)
    return EXIT_GOOD
  }
  if (first.startsWith('-')) {
    context.stderr.write(`waybill: unknown option "${first}"; ${suggestName(first, ['--help', '--version'])}\n`)
    return EXIT_USAGE
  }
  const wrong = asked.join(' ')
  const known = (of: readonly Command[]) => of.map(({ path }) => path.join(' '))
  const all = listNames(known(within.length > 0 ? within : commands))
  const suggestion = within.length > 0 && asked.length === 1 ? all : suggestName(wrong, known(commands), all)
  context.stderr.write(`waybill: there is no command "${wrong}"; ${suggestion}\n`)
  return EXIT_USAGE
}

async function explain(error: unknown): Promise<string> {
  // loaded only now, since most commands end well
  const { explainDatabaseError } = await import('../postgres/database-error.ts')
  return messageOf(error, explainDatabaseError)
}

/** With the messages of its causes, which often name the real fault. */
function messageOf(error: unknown, explainKnown: (error: Error) => string | undefined): string {
  if (!(error instanceof Error)) return String(error)
  // Connecting to a name with several addresses fails with one error for each.
  if (error instanceof AggregateError) return error.errors.map((each) => messageOf(each, explainKnown)).join('; ')
  const message = explainKnown(error) ?? error.message
  return error.cause === undefined ? message : `${message}: ${messageOf(error.cause, explainKnown)}`
}

/** Who runs this process: `user@host`. A user without a name, as in many containers, appears as `uid 1000`. */
export function currentActor(): string {
  return `${userName()}@${hostname()}`
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
