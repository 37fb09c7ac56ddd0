/**
 * Two processes on one database are replaced one after the other while clients call without a pause: no call fails. The first two are those of the last
 * release, where one is tagged. Behind nginx only where that is installed.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { reasonWithoutNginx } from '../../tools/proxies/nginx.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { findFreePort } from '../support/data/free-port.ts'
import { lastRelease, writeRelease } from '../support/last-release.ts'
import { startWaybill, type WaybillProcess } from '../support/process.ts'
import { addressesOf, callMeanwhile, grpcCaller, startGuidedNginx } from '../support/rolling.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let database: TestDatabase
let key: string
let folder: string
let ports: readonly [number, number]
const running = new Map<number, WaybillProcess>()

beforeAll(async () => {
  database = await createTestDatabase()
  const terms = { account: 'acme', scopes: ['payments:read'], now: new Date(), callsPerMinute: 0 } as const
  ;({ key } = await issueApiKey(createApiKeyRepository(database.knex), terms))
  ports = [await findFreePort(), await findFreePort()]
  folder = await makeTempFolder('rolling-restart')
  const release = lastRelease()
  const root = release && join(folder, 'released')
  if (release !== undefined && root !== undefined) await writeRelease(release, root)
  await Promise.all(ports.map((port) => start(port, root)))
})
afterAll(async () => {
  for (const each of running.values()) each.kill('SIGKILL')
  await Promise.all([...running.values()].map(({ ended }) => ended))
  await database?.drop()
  await rm(folder, { recursive: true, force: true })
})

/** @param root - of the code; this one by default */
async function start(port: number, root?: string): Promise<WaybillProcess> {
  const settings = { DATABASE_URL: urlOfDatabase(database), CHAINS_FILE: 'none', SHUTDOWN_DELAY_SECONDS: '1' }
  const environment = { ...settings, PORT: `${port}`, DATABASE_CONNECTIONS: '4' }
  const service = startWaybill(['serve'], environment, undefined, root)
  running.set(port, service)
  await service.says(/Waybill on/)
  return service
}

/** Replaces both processes, the second once the successor of the first has answered a call. */
async function replaceBoth(): Promise<void> {
  for (const port of ports) {
    const old = running.get(port)
    old?.kill('SIGTERM')
    expect(await old?.ended).toMatchObject({ code: 0, stderr: expect.not.stringContaining('SHUTTING_DOWN') })
    const successor = await start(port)
    await successor.says(/"msg":"call"/, 'stderr')
  }
}

it('fails no call of grpc-js with round_robin', async () => {
  const client = grpcCaller(addressesOf(ports), key)
  const { calls, failed } = await callMeanwhile(client.call, replaceBoth)
  client.close()
  expect(failed).toEqual([])
  expect(calls).toBeGreaterThan(200)
})

it('resets no connection while it stops: clients are served or refused', async () => {
  const search = { method: 'POST', headers: { 'content-type': 'application/json', 'x-api-key': key }, body: '{}' }
  const failed: unknown[] = []
  const [port] = ports
  const callUntilRefused = async () => {
    for (;;) {
      try {
        const url = `http://127.0.0.1:${port}/payments.v1.PaymentSearchService/SearchPayments`
        const answer = await fetch(url, search)
        await answer.text()
        if (answer.status !== 200) failed.push(answer.status)
      } catch (error) {
        const { cause } = error as { readonly cause?: { readonly code?: string } }
        if (cause?.code === 'ECONNREFUSED') return
        failed.push(cause)
      }
    }
  }
  for (let n = 0; n < 4; n++) {
    const calling = Promise.all(Array.from({ length: 4 }, callUntilRefused))
    await setTimeout(300)
    running.get(port)?.kill('SIGTERM')
    await calling
    await running.get(port)?.ended
    await start(port)
  }
  expect(failed).toEqual([])
})

describe.skipIf((await reasonWithoutNginx()) !== undefined)('behind nginx, as the guide sets it up', () => {
  let nginx: Awaited<ReturnType<typeof startGuidedNginx>>
  beforeAll(async () => {
    nginx = await startGuidedNginx(ports)
  })
  afterAll(() => nginx?.stop())

  it.each([
    ['JSON by GET', 'GET', '/payments', ''],
    ['Connect by POST', 'POST', '/payments.v1.PaymentSearchService/SearchPayments', '{}'],
  ])('fails no call of %s', async (_, verb, path, body) => {
    const { calls, failed } = await callMeanwhile(() => nginx.ask(key, verb, path, body), replaceBoth)
    expect({ failed, nginx: nginx.saysOf(failed) }).toEqual({ failed: [], nginx: '' })
    expect(calls).toBeGreaterThan(200)
  })

  it('fails no call of gRPC', async () => {
    const client = grpcCaller(nginx.grpc, key)
    const { calls, failed } = await callMeanwhile(client.call, replaceBoth)
    client.close()
    expect({ failed, nginx: nginx.saysOf(failed) }).toEqual({ failed: [], nginx: '' })
    expect(calls).toBeGreaterThan(200)
  })
})
