import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { runCommandLine } from '../run-command-line.ts'
import { commands } from './migrate-command.ts'

const DATABASE_URL = 'postgres://waybill@127.0.0.1:1/waybill'

it.each<[string[], environment: Record<string, string>, says: string]>([
  [['--shards', '0'], { DATABASE_URL }, '--shards is "0": use a whole number from 1 to 1024'],
  [['--shards', '1025'], { DATABASE_URL }, '--shards is "1025"'],
  [['--shards=-4'], { DATABASE_URL }, '--shards is "-4"'],
  [['--shards', '3.5'], { DATABASE_URL }, '--shards is "3.5"'],
  [['--shards', 'all'], { DATABASE_URL }, '--shards is "all"'],
  [['--shards', ''], { DATABASE_URL }, '--shards is ""'],
  [['payments'], { DATABASE_URL }, '"payments" is not expected here'],
  [[], {}, 'DATABASE_URL is not set: it has to lead to the coordinator of a Citus cluster'],
])('refuses %j', async (words, environment, says) => {
  const stderr = new PassThrough()
  const exitCode = await runCommandLine(commands, ['migrate', '--distribute', ...words], {
    environment,
    workingFolder: '/',
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr,
    actor: 'ann@host',
    signal: new AbortController().signal,
    delayStop: async () => {},
  })
  expect(exitCode).toBe(2)
  expect(String(stderr.read())).toContain(says)
})
