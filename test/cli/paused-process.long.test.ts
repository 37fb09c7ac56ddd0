/** A process that follows a chain is paused, as by a long collection of garbage or a sleeping machine, and goes on after another took over. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Account } from '../../src/domain/account.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { addAccount, canonical, makeRequest, paymentsOf, storeRequest } from '../support/detection.ts'
import { startWaybill, type WaybillProcess } from '../support/process.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let folder: string
let chain: TestChain
let database: TestDatabase
let account: Account
let settings: Record<string, string>
const services: WaybillProcess[] = []

beforeAll(async () => {
  folder = await makeTempFolder('paused')
  ;[chain, database] = await Promise.all([startTestChain({ chainId: 31_564 }), createTestDatabase()])
  const config = { ...chain.config({ name: 'BASE', finalityDepth: 3 }), blockTimeSeconds: 0.5 }
  const file = join(folder, 'chains.json')
  await writeFile(file, JSON.stringify({ chains: [config] }))
  settings = { DATA_DIR: join(folder, 'unused'), PORT: '0', CHAINS_FILE: file, DATABASE_URL: urlOfDatabase(database) }
  account = await addAccount(database.knex, 'shop')
})
afterAll(async () => {
  for (const service of services) {
    service.kill('SIGCONT')
    service.kill('SIGKILL')
    await service.ended
  }
  await chain?.stop()
  await database?.drop()
  await rm(folder, { recursive: true, force: true })
})

async function start(): Promise<WaybillProcess> {
  const service = startWaybill(['serve'], settings)
  services.push(service)
  await service.says(/Waybill on (http:\S+):/)
  return service
}

const ownerOf = async (): Promise<string | undefined> => {
  const row = await database.knex('leases').where('name', 'like', 'follow:%').first('owner')
  return row?.owner
}

let paid = 0
/** Pays a new request. @returns its payments as they are stored later */
async function pay(): Promise<() => Promise<unknown[]>> {
  const payee = canonical(`0x${(++paid).toString(16).padStart(40, '5')}`)
  const terms = { payee, network: 'BASE', paymentCurrency: 'ETH-BASE', amount: '1' }
  const request = await storeRequest(database.knex, account, makeRequest(terms))
  const { paymentReference } = request
  await chain.pay(chain.wallets[0], { kind: 'NATIVE', to: payee, amount: 10n ** 18n, paymentReference })
  return async () => (await paymentsOf(database.knex, account, request)).map(({ amount }) => amount)
}

it('a process that is paused loses the chain within 5 seconds, and writes nothing when it goes on', async () => {
  const first = await start()
  const patience = { timeout: 5_000, interval: 50 }
  await expect.poll(ownerOf, patience).toBeDefined()
  const second = await start()
  const before = await ownerOf()
  for (let round = 0; round < 3; round++) {
    const [follower, other] = round % 2 === 0 ? [first, second] : [second, first]
    // Some pauses begin within a step or a transaction: blocks come while the process is stopped.
    const during = [await pay(), await pay()]
    follower.kill('SIGSTOP')
    const since = performance.now()
    during.push(await pay())
    for (const stored of during) await expect.poll(stored, patience).toEqual(['1'])
    expect(performance.now() - since).toBeLessThan(5_000)
    const owner = await ownerOf()
    expect(owner === before).toBe(round % 2 === 1)

    follower.kill('SIGCONT')
    const after = await pay()
    await expect.poll(after, patience).toEqual(['1'])
    await chain.mine({ blocks: 4 })
    expect(await ownerOf()).toBe(owner)
    for (const stored of [...during, after]) expect(await stored()).toEqual(['1'])
    expect(other.stderr()).not.toMatch(/"level":"?(50|error)/)
  }
}, 60_000)
