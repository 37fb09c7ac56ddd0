/**
 * The repair of a chain whose final blocks were replaced, as an operator does it: service, command and node are processes of their own.
 */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Address, Hex } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CHAIN_LEASE_MS } from '../../src/store/leases-repository.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { runWaybill, startWaybill, type WaybillProcess } from '../support/process.ts'
import { runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let folder: string
let chain: TestChain
let database: TestDatabase
let settings: Record<string, string>
let service: WaybillProcess | undefined

beforeAll(async () => {
  folder = await makeTempFolder('restart')
  ;[chain, database] = await Promise.all([startTestChain({ chainId: 31_561 }), createTestDatabase()])
  const config = { ...chain.config({ name: 'BASE', finalityDepth: 3 }), blockTimeSeconds: 0.5 }
  const file = join(folder, 'chains.json')
  await writeFile(file, JSON.stringify({ chains: [config] }))
  settings = { DATA_DIR: join(folder, 'unused'), PORT: '0', CHAINS_FILE: file, DATABASE_URL: urlOfDatabase(database) }
})
afterAll(async () => {
  service?.kill('SIGKILL')
  await service?.ended
  await chain?.stop()
  await database?.drop()
  await rm(folder, { recursive: true, force: true })
})

const PATIENCE = { timeout: 10_000 }

async function startService(): Promise<string> {
  service = startWaybill(['serve'], settings)
  const [, url = ''] = await service.says(/Waybill on (http:\S+):/)
  return url
}

async function stopService(): Promise<void> {
  service?.kill('SIGTERM')
  expect(await service?.ended).toMatchObject({ code: 0 })
}

interface PaymentJson {
  readonly id: string
  readonly txHash: Hex
  readonly blockNumber: string
  readonly status: string
}

const byHash = (a: { txHash: Hex }, b: { txHash: Hex }) => a.txHash.localeCompare(b.txHash)

/** The payments of transactions as they are on the chain now, in the form in which the service answers them. */
async function onChain(hashes: readonly Hex[]) {
  const receipts = await Promise.all(hashes.map((hash) => chain.receipt(hash)))
  return receipts
    .flatMap((receipt) => receipt ?? [])
    .map(({ transactionHash, blockNumber }) => ({ txHash: transactionHash, blockNumber: String(blockNumber) }))
    .toSorted(byHash)
}

it('after a reorg of final blocks the command brings payments back to what is on the chain', async () => {
  const scopes = 'payments:read,requests:read,requests:write'
  const made = await runWaybill(['keys', 'create', '--account', 'shop', '--scopes', scopes, '--rate', '0'], settings)
  const headers = { 'x-api-key': made.stdout.trim(), 'content-type': 'application/json' }
  let url = await startService()
  // Two payers, so that a dropped transaction of one does not block those of the other by its nonce.
  const [payer, friend, payee] = chain.wallets
  for (const wallet of [payer, friend]) {
    await chain.fund(chain.tokens.USDC, wallet, 1_000_000000n)
    await chain.approve(wallet, chain.tokens.USDC, chain.contracts.erc20FeeProxy, 1_000_000000n)
  }

  const json = async <T>(path: string, body?: object): Promise<T> => {
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
    const answer = await fetch(url + path, init)
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`)
    return answer.json() as Promise<T>
  }
  const payments = async () => (await json<{ payments: PaymentJson[] }>('/payments')).payments.toSorted(byHash)
  const facts = async () => (await payments()).map(({ txHash, blockNumber }) => ({ txHash, blockNumber }))
  const statusOf = async (reference: Hex) => (await json<{ status: string }>(`/v1/request/${reference}`)).status
  const newRequest = async () => {
    const terms = { payee, amount: '10', invoiceCurrency: 'USDC', paymentCurrency: 'USDC', network: 'BASE' }
    return (await json<{ paymentReference: Hex }>('/v1/request', terms)).paymentReference
  }
  const pay = async (from: Address, paymentReference: Hex) => {
    const token = chain.tokens.USDC.address
    const paid = await chain.pay(from, { kind: 'ERC20', token, to: payee, amount: 10_000000n, paymentReference })
    return paid.transactionHash
  }

  const [before, dropped, again] = [await newRequest(), await newRequest(), await newRequest()]
  const first = await pay(payer, before)
  await chain.mine()
  const shared = Number((await chain.client.head()).number)
  const [lost, moved] = [await pay(friend, dropped), await pay(payer, again)]
  await chain.mine({ blocks: 6 })
  const hashes = [first, lost, moved]
  await expect
    .poll(async () => (await payments()).map(({ status }) => status), PATIENCE)
    .toEqual(Array(3).fill('CONFIRMED'))
  const found = await payments()
  expect(await facts()).toEqual(await onChain(hashes))

  const head = Number((await chain.client.head()).number)
  await chain.reorg(head - shared, [{ hash: moved, offset: 1 }])
  await chain.mine({ blocks: 6 })
  await service?.says(/was final with hash/, 'stderr')

  const words = ['chains', 'restart', 'base', '--from', String(shared)]
  const refused = await runWaybill(words, settings)
  expect([refused.code, refused.stdout]).toEqual([1, ''])
  expect(refused.stderr).toMatch(
    /another process follows BASE; nothing was changed\. Stop every process of the service .* keeps its chains for 3 seconds/,
  )
  expect(refused.stderr).not.toMatch(/forg/i)
  expect(await payments()).toEqual(found)

  await stopService()
  const tooHigh = await runWaybill(['chains', 'restart', 'base', '--from', String(shared + 1)], settings)
  expect([tooHigh.code, tooHigh.stdout]).toEqual([1, ''])
  expect(tooHigh.stderr).toContain(`BASE no longer has the transaction ${lost} in block ${shared + 1}`)
  const repaired = await runWaybill(words, settings)
  expect([repaired.code, repaired.stdout]).toEqual([0, ''])
  expect(repaired.stderr).toMatch(/It was stopped: block \d+ was final with hash 0x/)
  expect(repaired.stderr).toContain(`what was found above block ${shared}: 2 payments and 0 refunds`)
  expect(repaired.stderr).toContain(`the service reads BASE from block ${shared + 1} when it starts`)

  url = await startService()
  const expected = await onChain(hashes)
  expect(expected.map(({ txHash }) => txHash)).toEqual([first, moved].toSorted())
  await expect.poll(facts, PATIENCE).toEqual(expected)
  const idOf = (hash: Hex, list: readonly PaymentJson[]) => list.find(({ txHash }) => txHash === hash)?.id
  const after = await payments()
  for (const hash of [first, moved]) expect(idOf(hash, after)).toBe(idOf(hash, found))
  await expect.poll(() => statusOf(again), PATIENCE).toBe('PAID')
  expect([await statusOf(before), await statusOf(dropped)]).toEqual(['PAID', 'OPEN'])
  await stopService()
}, 60_000)

it('the documentation says how long a chain stays with a process that is gone', async () => {
  const page = async (name: string) => {
    const text = await readFile(join(import.meta.dirname, '../../docs', name), 'utf8')
    return text.replaceAll('\n', ' ')
  }
  const seconds = CHAIN_LEASE_MS / 1_000
  expect(await page('internals/detection.md')).toContain(`by a lease in the database of ${seconds} seconds`)
  expect(await page('guides/verify.md')).toContain(`one that was killed keeps its chains for ${seconds} seconds`)
})

describe('chains restart changes nothing', () => {
  it.each<[string, number, string[], Record<string, string>, string]>([
    ['without a block', 2, ['BASE'], {}, '--from is missing'],
    ['from something that is no block', 2, ['BASE', '--from', '-1'], {}, '--from'],
    ['on a chain that the file lacks', 2, ['POLYGON', '--from', '1'], {}, 'the chains file has no chain "POLYGON"'],
    [
      'without a chains file',
      2,
      ['BASE', '--from', '1'],
      { CHAINS_FILE: 'none' },
      'CHAINS_FILE is not set or has no chains',
    ],
    ['from a block that is not there', 1, ['BASE', '--from', '999999'], {}, 'BASE has no block 999999'],
  ])('%s', async (_, code, words, environment, says) => {
    const stored = await database.knex('chain_state').select()
    const ended = await runCommand({ ...settings, ...environment }, ['chains', 'restart', ...words])
    expect([ended.code, ended.stdout]).toEqual([code, ''])
    expect(ended.stderr).toContain(says)
    expect(ended.stderr).not.toMatch(/forg[eo]t.* what was found above/i)
    expect(await database.knex('chain_state').select()).toEqual(stored)
  })
})
