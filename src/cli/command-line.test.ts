import { Readable, Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import packageFile from '../../package.json' with { type: 'json' }
import { ConfigError } from '../config.ts'
import { findBinaries } from '../postgres/embedded/embedded-files.ts'
import { runCommandLine } from './run-command-line.ts'
import { type Command, writeFully } from './shared/command.ts'

const greet: Command = {
  path: ['greet'],
  summary: 'Greet somebody.',
  takes: {
    NAME: 'whom',
    '--tone T': 'how',
    '[--loud]': 'louder',
  },
  environment: ['LOG_LEVEL'],
  async run({ positionals, options }, context) {
    if (options.tone === 'config') throw new ConfigError(['PORT is wrong', 'HOST is wrong'])
    if (options.tone === 'fail') throw new Error('no voice', { cause: new Error('a cold') })
    if (options.tone === 'absent') await findBinaries('win32', 'x64')
    context.stdout.write(JSON.stringify({ positionals, options }))
    return 0
  },
}
const list: Command = { path: ['keys', 'list'], summary: 'List keys.', environment: [], run: async () => 0 }

const revoke: Command = { ...list, path: ['keys', 'revoke'], summary: 'Revoke a key.' }

function collect() {
  const chunks: string[] = []
  const stream = new Writable({
    write(chunk, _, done) {
      chunks.push(String(chunk))
      done()
    },
  })
  return { stream, text: () => chunks.join('') }
}

async function run(...words: string[]) {
  const stdout = collect()
  const stderr = collect()
  const exitCode = await runCommandLine([greet, list, revoke], words, {
    environment: {},
    workingFolder: '/',
    stdin: Readable.from([]),
    stdout: stdout.stream,
    stderr: stderr.stream,
    actor: 'ann@host',
    signal: new AbortController().signal,
    delayStop: async () => {},
  })
  return { exitCode, stdout: stdout.text(), stderr: stderr.text() }
}

describe('the command line', () => {
  it('runs a command with its words', async () => {
    const { exitCode, stdout } = await run('greet', 'Ada', '--tone', 'kind', '--loud')
    expect(exitCode).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ positionals: ['Ada'], options: { tone: 'kind', loud: '' } })
  })

  it.each([[[]], [['--help']], [['-h']]])('shows all commands for %j', async (words) => {
    const { exitCode, stdout, stderr } = await run(...words)
    expect(exitCode).toBe(0)
    expect(stdout).toContain('keys list')
    expect(stdout).toContain('DATABASE_URL')
    expect(stderr).toBe('')
  })

  it.each(['--version', '-V'])('shows the release for %s', async (word) => {
    expect(await run(word)).toEqual({ exitCode: 0, stdout: `${packageFile.version}\n`, stderr: '' })
  })

  it('shows the help of one command, and of a group', async () => {
    const { exitCode, stdout } = await run('greet', '--help')
    expect(exitCode).toBe(0)
    expect(stdout).toContain('Usage: waybill greet NAME --tone T [--loud]')
    expect(stdout).toContain('LOG_LEVEL')
    expect((await run('keys', '--help')).stdout).toContain('keys list')
  })

  it.each<[string[], string]>([
    [['greet'], '--tone is missing'],
    [['greet', '--tone', 'kind'], 'NAME is missing'],
    [['greet', 'Ada', 'Bob', '--tone', 'kind'], '"Bob" is not expected here'],
    [['greet', 'Ada', '--tone'], '--tone'],
    [['greet', 'Ada', '--tune', 'kind'], `Unknown option '--tune'; did you mean "--tone"?\n`],
    [['greet', 'Ada', '--nonsense'], `Unknown option '--nonsense'; use one of: --tone, --loud, --help\n`],
    [['--verson'], 'waybill: unknown option "--verson"; did you mean "--version"?\n'],
    [['--x', 'keys', 'list'], 'waybill: unknown option "--x"; use one of: --help, --version\n'],
    [['gret'], 'did you mean "greet"'],
    [['keys'], 'there is no command "keys"; use one of: keys list, keys revoke\n'],
    [['keys', 'nonsense'], 'use one of: keys list, keys revoke\n'],
    [['nonsense'], 'use one of: greet, keys list, keys revoke\n'],
    [['keys', 'lst'], 'did you mean "keys list"'],
  ])('answers %j with exit code 2 and says why', async (words, says) => {
    const { exitCode, stdout, stderr } = await run(...words)
    expect(exitCode).toBe(2)
    expect(stderr).toContain(says)
    expect(stdout).toBe('')
  })

  it('reports every fault of the configuration with exit code 2, and a failure with its cause and 1', async () => {
    const wrong = await run('greet', 'Ada', '--tone', 'config')
    expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining('- PORT is wrong\n- HOST is wrong\n')])
    const failed = await run('greet', 'Ada', '--tone', 'fail')
    expect([failed.exitCode, failed.stderr]).toEqual([1, 'waybill greet: no voice: a cold\n'])
  })

  it('says in a sentence what is not installed, with exit code 2', async () => {
    const { exitCode, stderr } = await run('greet', 'Ada', '--tone', 'absent')
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/^waybill greet: .* cannot run here: .*\n$/)])
  })
})

it.each([1, 100_000])('an output of %i bytes whose reader stops says so', async (bytes) => {
  const out = new Writable({ write: (_, __, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })) })
  out.on('error', () => {})
  const write = async () => {
    for (;;) await writeFully(out, 'x'.repeat(bytes)).then(() => new Promise(setImmediate))
  }
  await expect(write()).rejects.toThrow('the reader of the output stopped before its end')
})
