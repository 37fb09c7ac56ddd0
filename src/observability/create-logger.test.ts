import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { createLogger } from './create-logger.ts'

async function linesOf(write: (logger: ReturnType<typeof createLogger>) => void, level = 'info') {
  const stream = new PassThrough()
  write(createLogger({ level, stream }))
  stream.end()
  const lines = (await text(stream)).split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

it('writes a line of JSON an entry, with the level by name and the time in UTC', async () => {
  const [line, ...more] = await linesOf((logger) => logger.warn({ chain: 'BASE' }, 'it is slow'))
  expect(more).toEqual([])
  expect(line).toEqual({
    level: 'warn',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    chain: 'BASE',
    msg: 'it is slow',
  })
})

it('leaves out what is below its level', async () => {
  const lines = await linesOf((logger) => {
    logger.info({}, 'no')
    logger.error({}, 'yes')
  }, 'warn')
  expect(lines.map(({ msg }) => msg)).toEqual(['yes'])
})

it.each(['x-api-key', 'authorization', 'cookie', 'password', 'apiKey', 'databaseUrl'])(
  'never writes a value of %s, at the top or one below',
  async (name) => {
    const lines = await linesOf((logger) => logger.info({ [name]: 'hush', headers: { [name]: 'hush' } }, 'called'))
    expect(lines).toMatchObject([{ [name]: '[secret]', headers: { [name]: '[secret]' } }])
    expect(JSON.stringify(lines)).not.toContain('hush')
  },
)

it('never writes a secret that an error carries', async () => {
  const error = Object.assign(new Error('no'), { databaseUrl: 'postgres://user:hush@host' })
  const lines = await linesOf((logger) => {
    logger.warn({ err: error }, 'it failed')
    logger.warn({ detail: error }, 'it failed')
    logger.warn(error, 'it failed')
  })
  expect(lines).toMatchObject([
    { err: { type: 'Error', message: 'no', databaseUrl: '[secret]' } },
    { detail: { databaseUrl: '[secret]' } },
    { err: { databaseUrl: '[secret]' } },
  ])
  expect(JSON.stringify(lines)).not.toContain('hush')
})

it('writes what is no secret as it is', async () => {
  const fields = { at: new Date(0), list: [{ a: 1 }], nothing: null, deep: { a: { b: [1] } }, err: 'a text' }
  const [line] = await linesOf((logger) => logger.info(fields, 'said'))
  expect(line).toMatchObject({ ...fields, at: '1970-01-01T00:00:00.000Z' })
})
