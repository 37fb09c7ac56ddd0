/**
 * Writes docs/reference/log-messages.md, which says of each warning and error that the service can log what to do: `npm run messages`. The messages are
 * found in `src/`, what to do stands in `log-remedies.ts`. With `--check` it writes nothing, and fails when one lacks the other or the file differs.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from '../run-command.ts'
import { remedies } from './log-remedies.ts'

const FILE = join(root, 'docs/reference/log-messages.md')

/** A message that a place in the code logs. `{name}` stands for a value. */
export interface LoggedMessage {
  readonly levels: string
  readonly message: string
}

/** Calls of a logger at these levels, or at a level that is decided when it is called. */
const CALL = /\blogger\??(?:\.(warn|error|fatal)|\[(\w+)[^\]]*\])\(/g

const STRING = /'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g

/** Finds what a source logs. @returns also the calls whose message is not written there */
export function findMessages(path: string, source: string): LoggedMessage[] {
  return [...source.matchAll(CALL)].flatMap((call) => {
    const levels = call[1] ?? levelsOf(call[2] ?? '', source)
    const last = lastArgument(source.slice(call.index + call[0].length))
    const texts = stringsIn(/^[\w.]+$/.test(last) ? definitionOf(last, source.slice(0, call.index)) : last)
    return texts.length === 0 ? [{ levels, message: `(${path})` }] : texts.map((message) => ({ levels, message }))
  })
}

/** A level that is decided by a function, or by a condition in the brackets. */
function levelsOf(name: string, source: string): string {
  return name !== 'hasFailed' && source.includes("'error'") ? 'warn, error' : 'warn'
}

/** The strings of the constant of that name, which is declared last before the call. */
function definitionOf(name: string, before: string): string {
  const at = before.lastIndexOf(`const ${name} =`)
  return at < 0 ? '' : (before.slice(at).split(/\n\s*(?:const|if|else|return|logger|\})/, 1)[0] ?? '')
}

function lastArgument(text: string): string {
  let depth = 0
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? ''
    const quoted = '\'"`'.includes(character)
      ? /^(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)/.exec(text.slice(at))
      : null
    if (quoted !== null) at += quoted[0].length - 1
    else if ('([{'.includes(character)) depth++
    else if (depth === 0 && character === ')') return text.slice(start, at).trim()
    else if (')]}'.includes(character)) depth--
    else if (depth === 0 && character === ',' && text.slice(at + 1).trimStart()[0] !== ')') start = at + 1
  }
  return ''
}

function stringsIn(text: string): string[] {
  return [...text.matchAll(STRING)]
    .map(([, single, double, template]) => single ?? double ?? template ?? '')
    .map((each) => each.replace(/\$\{(?:[\w.]+\.)?(\w+)\}/g, '{$1}').replaceAll("\\'", "'"))
}

/** All messages of the service, each once. */
function allMessages(): LoggedMessage[] {
  const paths = globSync('src/**/*.ts', { cwd: root }).filter((path) => !path.endsWith('.test.ts'))
  const found = paths.toSorted().flatMap((path) => findMessages(path, readFileSync(join(root, path), 'utf8')))
  const byMessage = Map.groupBy(found, ({ message }) => message)
  return [...byMessage].map(([message, each]) => ({
    message,
    levels: [...new Set(each.map(({ levels }) => levels))].join(', '),
  }))
}

function write(messages: readonly LoggedMessage[]): string {
  const rows = messages
    .flatMap(({ message, levels }) => {
      const { do: remedy, as = message } = remedies[message] ?? { do: '' }
      return remedy === '' ? [] : [{ as, levels, remedy }]
    })
    .toSorted((a, b) => (a.as < b.as ? -1 : 1))
  const lines = rows.map(({ as, levels, remedy }) => `| \`${as}\` | ${levels} | ${remedy} |`)
  return `# Messages of the log

Written by \`npm run messages\` from \`src/\` and \`tools/log/log-remedies.ts\`. Do not edit.

Every line is JSON; \`msg\` is the message. A warning may pass by itself; an error needs somebody. \`{name}\` stands for a value.

| message | level | do |
|---|---|---|
${lines.join('\n')}
`
}

export function findFaults(): string[] {
  const messages = allMessages()
  const known = new Set(messages.map(({ message }) => message))
  const missing = messages.filter(({ message }) => remedies[message] === undefined)
  const stale = Object.keys(remedies).filter((message) => !known.has(message))
  const present = readFileSync(FILE, { encoding: 'utf8', flag: 'a+' })
  return [
    ...missing.map(({ message }) => `tools/log/log-remedies.ts says nothing of "${message}"`),
    ...stale.map((message) => `nothing in src/ logs "${message}"`),
    ...(present === write(messages) ? [] : ['docs/reference/log-messages.md is old: run npm run messages']),
  ]
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!process.argv.includes('--check')) writeFileSync(FILE, write(allMessages()))
  const faults = findFaults()
  process.stderr.write(faults.map((fault) => `${fault}\n`).join(''))
  process.exitCode = faults.length === 0 ? 0 : 1
}
