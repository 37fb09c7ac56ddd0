import { once } from 'node:events'
import { copyFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { startWaybill } from '../support/process.ts'
import { runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { tlsPaths } from '../support/tls-certificate.ts'

let folder: string
let database: TestDatabase
beforeAll(async () => {
  folder = await makeTempFolder('process-tls')
  database = await createTestDatabase()
})
afterAll(async () => {
  await database?.drop()
  await rm(folder, { recursive: true, force: true })
})

it.each([
  ['one without the other', { TLS_CERT: tlsPaths.first.cert }, ['TLS_CERT is set and TLS_KEY is not']],
  [
    'missing files',
    { TLS_CERT: '/nowhere/cert.pem', TLS_KEY: '/nowhere/key.pem' },
    ['TLS_CERT cannot be read: ENOENT', 'TLS_KEY cannot be read: ENOENT'],
  ],
  [
    'the key of another certificate',
    { TLS_CERT: tlsPaths.first.cert, TLS_KEY: tlsPaths.renewed.key },
    ['is not the key of the first certificate in TLS_CERT'],
  ],
])('%s: the start ends with exit code 2', async (_name, environment, says) => {
  const { code, stderr } = await runCommand({ DATA_DIR: join(folder, 'never'), PORT: '0', ...environment }, ['serve'])
  expect(code).toBe(2)
  for (const text of says) expect(stderr).toContain(text)
})

it('SIGHUP reloads the certificate, and keeps the old one when the new one is not valid', async () => {
  const own = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  const put = async (paths: { cert: string; key: string }) => {
    await copyFile(paths.cert, own.cert)
    await copyFile(paths.key, own.key)
  }
  await put(tlsPaths.first)
  const environment = { DATABASE_URL: urlOfDatabase(database), PORT: '0', CHAINS_FILE: 'none' }
  const service = startWaybill(['serve'], { ...environment, TLS_CERT: own.cert, TLS_KEY: own.key })
  const [, port = ''] = await service.says(/Waybill on https:\/\/127\.0\.0\.1:(\d+)/)
  expect(await nameServedAt(Number(port))).toBe('localhost')

  await put({ ...tlsPaths.renewed, key: tlsPaths.first.key })
  service.kill('SIGHUP')
  await service.says(/the old one stays in use/, 'stderr')
  expect(await nameServedAt(Number(port))).toBe('localhost')

  await put(tlsPaths.renewed)
  service.kill('SIGHUP')
  await service.says(/the certificate was reloaded/, 'stderr')
  expect(await nameServedAt(Number(port))).toBe('renewed')

  service.kill('SIGTERM')
  expect((await service.ended).code).toBe(0)
})

async function nameServedAt(port: number): Promise<string | undefined> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return CN as string | undefined
}
