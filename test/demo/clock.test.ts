import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeAbiParameters, type Hex, keccak256 } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLivePayer } from '../../demo/live-payer.ts'
import { DEMO_CHAINS, MAX_UNSAVED_BLOCKS } from '../../demo/network/chain-specs.ts'
import { type Clock, createClock } from '../../demo/network/clock.ts'
import { encodeLatestRound } from '../../demo/network/demo-contracts.ts'
import { type DemoChain, type DemoNetwork, startNetwork } from '../../demo/network/network.ts'
import { toQuantity } from '../../demo/network/rpc.ts'
import { usdPrice } from '../../demo/network/wandering-prices.ts'
import { recordLogs } from '../support/logs.ts'
import { recordRequests } from './demo-requests.ts'

const POLYGON = DEMO_CHAINS.filter((spec) => spec.name === 'POLYGON')

describe('a demo chain whose clock the test moves', () => {
  let folder: string
  let network: DemoNetwork
  let chain: DemoChain
  let clock: Clock
  let nowMs = Date.now()
  const now = (): Date => new Date(nowMs)
  const logs = recordLogs()

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-demo-clock-'))
    network = await startNetwork({ folder, logger: logs, now }, POLYGON)
    const [only] = network.chains
    if (!only) throw new Error('no chain was started')
    chain = only
    clock = createClock(chain, { now, logger: logs, startBlock: await chain.client.head() })
    await clock.mineNow()
  })
  afterAll(async () => {
    await clock.stop()
    await network.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const readFeed = async (): Promise<{ round: bigint; answer: bigint; updatedAt: bigint }> => {
    const data = await chain.client.read(encodeLatestRound(chain.deployed.native.feed))
    const parameters = ['uint80', 'int256', 'uint256', 'uint256', 'uint80'].map((type) => ({ type }))
    const [round, answer, , updatedAt] = decodeAbiParameters(parameters, data) as bigint[]
    return { round: round as bigint, answer: answer as bigint, updatedAt: updatedAt as bigint }
  }

  it('gives each block the time of the clock and the base fee of the chain', async () => {
    nowMs += 7_000
    await clock.mineNow()
    const head = await chain.client.head()
    expect(head.timestampSec).toBe(Math.floor(nowMs / 1000))
    expect(head.baseFeePerGas).toBe(40_000_000_000n)
  })

  it('never gives two blocks the same time', async () => {
    const before = await chain.client.head()
    await clock.mineNow()
    await clock.mineNow()
    expect((await chain.client.head()).timestampSec).toBe(before.timestampSec + 2)
  })

  it('moves the price of the native coin after a minute, and not earlier', async () => {
    nowMs += 60_000
    await clock.mineNow()
    const first = await readFeed()
    nowMs += 30_000
    await clock.mineNow()
    expect(await readFeed()).toEqual(first)
    nowMs += 31_000
    await clock.mineNow()
    const second = await readFeed()
    expect(second.round).toBe(first.round + 1n)
    expect(second.updatedAt).toBe(BigInt(Math.floor(nowMs / 1000)))
    // The answer may equal the first one, at the crest of a wave.
    expect(second.answer).toBe(usdPrice(chain.spec, 'POL', Math.floor(nowMs / 1000)))
  })

  it('never has more unsaved blocks than MAX_UNSAVED_BLOCKS', async () => {
    for (let block = 0; block < 3 * MAX_UNSAVED_BLOCKS; block++) {
      nowMs += 1_000
      await clock.mineNow()
      const saved = JSON.parse(await readFile(chain.state.stateFile, 'utf8')) as { best_block_number: number }
      const head = Number((await chain.client.head()).number)
      expect(head - saved.best_block_number).toBeLessThanOrEqual(MAX_UNSAVED_BLOCKS)
    }
    for (const spec of DEMO_CHAINS) expect(spec.finalityDepth).toBeGreaterThan(MAX_UNSAVED_BLOCKS)
  })

  it('pays new requests of all kinds, and no payment is reverted', async () => {
    const requests = recordRequests()
    const payer = createLivePayer([chain], { requests, madeAtSec: nowMs / 1_000, now, logger: logs })
    const fromBlock = toQuantity((await chain.client.head()).number)
    for (let paid = 1; paid <= 30; paid++) {
      nowMs += 5_000
      await payer.payOnce()
      await clock.mineNow()
    }
    const topics = [...requests.byReference.keys()].map((reference) => keccak256(reference as Hex))
    const events = await chain.client.rpc.call<{ topics: Hex[] }[]>('eth_getLogs', [
      { fromBlock, topics: [null, topics] },
    ])
    expect(new Set(events.map(({ topics: [, topic] }) => topic))).toEqual(new Set(topics))
    expect(topics).toHaveLength(30)
    expect(logs.records.filter((record) => record.level === 'warn')).toEqual([])
  })

  it('names the chain whose node was killed', async () => {
    process.kill(chain.anvil.pid, 'SIGKILL')
    const { chain: name, exit } = await network.crashed
    expect(name).toBe('POLYGON')
    expect(exit).toMatchObject({ signal: 'SIGKILL', expected: false } satisfies { signal: string; expected: boolean })
    await expect(chain.client.rpc.call<Hex>('eth_blockNumber')).rejects.toThrow('ECONNREFUSED')
  })
})
