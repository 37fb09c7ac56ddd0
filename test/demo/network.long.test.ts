import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Address, type Hex, keccak256, toEventSelector } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Demo, startDemo } from '../../demo/demo.ts'
import type { DemoFile } from '../../demo/demo-file.ts'
import { PAYMENTS_PER_CHAIN } from '../../demo/history/history.ts'
import { type ChainClient, createChainClient } from '../../demo/network/chain-client.ts'
import { DEMO_CHAINS } from '../../demo/network/chain-specs.ts'
import { encodeBalanceOf } from '../../demo/network/demo-contracts.ts'
import { DEMO_WALLETS } from '../../demo/network/people.ts'
import { createRpc } from '../../demo/network/rpc.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { caip2Of, knownChains } from '../../src/domain/chain.ts'
import { recordLogs } from '../support/logs.ts'
import { type RecordedRequests, recordRequests } from './demo-requests.ts'

const ACCESS = { baseUrl: 'http://127.0.0.1:8080', apiKey: 'demo', publishableKey: 'wbp_demo' }
const ERC20_PAID = toEventSelector('TransferWithReferenceAndFee(address,address,uint256,bytes,uint256,address)')
const NATIVE_PAID = toEventSelector('TransferWithReferenceAndFee(address,uint256,bytes,uint256,address)')
const CONVERTED = toEventSelector('TransferWithConversionAndReference(uint256,address,bytes,uint256,uint256)')

interface Log {
  address: Address
  topics: [Hex, Hex]
  data: Hex
  blockNumber: Hex
}

let dataDir: string
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'waybill-demo-test-'))
})
afterAll(() => rm(dataDir, { recursive: true, force: true }))

describe('the first start', () => {
  let demo: Demo
  let requests: RecordedRequests
  let file: DemoFile
  const logs = new Map<string, Log[]>()

  beforeAll(async () => {
    demo = await startDemo({ dataDir, logger: recordLogs(), now: () => new Date() })
    requests = recordRequests()
    await demo.seed(requests)
    file = await demo.live(ACCESS)
    for (const config of demo.configs) logs.set(config.name, await paymentLogs(config))
  })
  afterAll(() => demo.stop())

  const configOf = (name: string): ChainConfig => demo.configs.find((config) => config.name === name) as ChainConfig
  const logsOf = (reference: string, event: Hex): Log[] =>
    [...logs.values()].flat().filter((log) => log.topics[0] === event && log.topics[1] === keccak256(reference as Hex))
  const requestSaying = (start: string): DemoFile['requests'][number] => {
    const found = file.requests.find((request) => request.says.startsWith(start))
    if (!found) throw new Error(`no request says ${start}`)
    return found
  }

  it('creates every chain', () => {
    expect(demo.freshChains).toEqual(['ETHEREUM', 'POLYGON', 'ARBITRUM', 'BSC'])
  })

  it('gives tokens the decimals of the real networks', () => {
    const decimals = demo.configs.map((config) => [config.name, ...config.tokens.map((token) => token.decimals)])
    expect(decimals).toEqual([
      ['ETHEREUM', 6, 6, 18],
      ['POLYGON', 6, 6, 18],
      ['ARBITRUM', 6, 6, 18],
      ['BSC', 18, 18, 18],
    ])
    expect(demo.configs.map((config) => config.native.symbol)).toEqual(['ETH', 'POL', 'ETH', 'BNB'])
  })

  it('has nodes that answer with the configured chain ids', async () => {
    for (const config of demo.configs) {
      expect(Number(await clientOf(config).rpc.call<Hex>('eth_chainId'))).toBe(config.chainId)
    }
  })

  it('has code at every address of the configuration', async () => {
    for (const config of demo.configs) {
      const feeds = [config.native.usdFeed, ...config.tokens.map((token) => token.usdFeed)]
      const contracts = [...config.contracts, ...config.tokens].map((contract) => contract.address)
      for (const address of [config.multicall, ...feeds, ...contracts]) {
        expect((await clientOf(config).rpc.call<Hex>('eth_getCode', [address, 'latest'])).length).toBeGreaterThan(100)
      }
    }
  })

  it('predicts the base fee of the next block correctly', async () => {
    const expected = { ETHEREUM: 8_000_000_000n, POLYGON: 40_000_000_000n, ARBITRUM: 20_000_000n, BSC: 100_000_000n }
    for (const [name, wei] of Object.entries(expected)) {
      const { rpc } = clientOf(configOf(name))
      const history = await rpc.call<{ baseFeePerGas: Hex[] }>('eth_feeHistory', ['0x5', 'latest', [50]])
      expect(history.baseFeePerGas.map(BigInt)).toEqual(history.baseFeePerGas.map(() => wei))
    }
  })

  it('gives each wallet exactly the balances of its specification', async () => {
    for (const wallet of DEMO_WALLETS) {
      const address = file.wallets[wallet.name]?.address as Address
      for (const config of demo.configs) {
        const holding = wallet.holds.find((candidate) => candidate.chain === config.name)
        const { client, rpc } = { client: clientOf(config), rpc: clientOf(config).rpc }
        const coins = BigInt(await rpc.call<Hex>('eth_getBalance', [address, 'latest']))
        expect(coins).toBe(BigInt(holding?.coins ?? 0) * 10n ** 18n)
        for (const token of config.tokens) {
          const balance = BigInt(await client.read(encodeBalanceOf(token.address as unknown as Address, address)))
          expect(balance).toBe(BigInt(holding?.tokens?.[token.symbol] ?? 0) * 10n ** BigInt(token.decimals))
        }
      }
    }
  })

  it('has payments on every chain, with every kind of event, all of known requests', () => {
    const known = new Set([...requests.byReference.keys()].map((reference) => keccak256(reference as Hex)))
    for (const config of demo.configs) {
      const events = logs.get(config.name) ?? []
      const payments = events.filter((log) => log.topics[0] !== CONVERTED)
      expect(payments.length).toBeGreaterThanOrEqual(PAYMENTS_PER_CHAIN)
      for (const event of [ERC20_PAID, NATIVE_PAID, CONVERTED]) {
        expect(events.filter((log) => log.topics[0] === event).length).toBeGreaterThan(5)
      }
      expect(events.every((log) => known.has(log.topics[1]))).toBe(true)
    }
  })

  it('has made the payments that the requests of demo.json describe', () => {
    const paid = (start: string): bigint[] =>
      logsOf(requestSaying(start).paymentReference, ERC20_PAID).map((log) => BigInt(`0x${log.data.slice(130, 194)}`))
    expect(paid('Open: 150 USDC')).toEqual([])
    expect(paid('Open: 80.5 USDT')).toEqual([])
    expect(paid('Partially paid')).toEqual([120_000000n])
    expect(paid('Paid: 250 DAI')).toEqual([100n * 10n ** 18n, 150n * 10n ** 18n])
    expect(paid('Overpaid')).toEqual([130_000000n])
    expect(paid('Open, although').length).toBe(1)
    expect(logsOf(requestSaying('Open: 0.25 ETH').paymentReference, NATIVE_PAID)).toEqual([])
    const inFiat = logsOf(requestSaying('Paid: 200 US').paymentReference, CONVERTED)
    expect(inFiat.map((log) => BigInt(log.data.slice(0, 66)))).toEqual([20_000_000_000n])
  })

  it('has only final payments', async () => {
    for (const config of demo.configs) {
      const head = (await clientOf(config).head()).number
      for (const log of logs.get(config.name) ?? []) {
        expect(Number(head - BigInt(log.blockNumber))).toBeGreaterThanOrEqual(config.finality.depth)
      }
    }
  })

  it('writes what it returns to demo.json', async () => {
    expect(JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))).toEqual(file)
    expect(file).toMatchObject(ACCESS)
    expect(file.chains.map((chain) => chain.chainId)).toEqual(demo.configs.map((config) => config.chainId))
    expect(Object.keys(file.wallets).length).toBeGreaterThanOrEqual(5)
  })

  describe('followed by a second start', () => {
    let heads: { number: bigint; hash: Hex }[]
    let again: Demo
    const secondRequests = recordRequests()

    beforeAll(async () => {
      const path = join(dataDir, 'demo.json')
      expect((JSON.parse(await readFile(path, 'utf8')) as DemoFile).requests).toEqual(file.requests)
      await demo.stop()
      await expect(readFile(path)).rejects.toThrow('ENOENT')
      again = await startDemo({ dataDir, logger: recordLogs(), now: () => new Date() })
      heads = await Promise.all(again.configs.map((config) => clientOf(config).head()))
    })
    afterAll(() => again.stop())

    it('continues the chains with the same requests and pays none of them again', async () => {
      expect(again.freshChains).toEqual([])
      await again.seed(secondRequests)
      const second = await again.live(ACCESS)
      expect(second.requests).toEqual(file.requests)
      expect(second.wallets).toEqual(file.wallets)
      for (const [reference, terms] of secondRequests.byReference) {
        const { createdAt: _, ...rest } = terms
        expect(requests.byReference.get(reference)).toMatchObject(rest)
      }
      for (const config of again.configs) {
        const known = new Set(file.requests.map((request) => keccak256(request.paymentReference)))
        const seeded = (list: readonly Log[]): Log[] => list.filter((log) => known.has(log.topics[1]))
        expect(seeded(await paymentLogs(config)).length).toBe(seeded(logs.get(config.name) ?? []).length)
      }
    })

    it('continues from the stored blocks, at the present time', async () => {
      for (const [index, config] of again.configs.entries()) {
        const before = heads[index] as { number: bigint; hash: Hex }
        const { rpc } = clientOf(config)
        const block = await rpc.call<{ hash: Hex }>('eth_getBlockByNumber', [`0x${before.number.toString(16)}`, false])
        expect(block.hash).toBe(before.hash)
        const head = await clientOf(config).head()
        expect(head.number).toBeGreaterThan(before.number)
        expect(Math.abs(head.timestampSec - Date.now() / 1000)).toBeLessThan(30)
      }
    })
  })
})

describe('a start with a damaged data folder', () => {
  const chainFile = (chain: string, file: string): string => join(dataDir, 'chains', chain, file)
  const tear = async (file: string): Promise<void> => writeFile(file, (await readFile(file, 'utf8')).slice(0, 50_000))
  /** Starts the demo, runs `check`, and stops the demo. */
  const startAndSee = async (check: (demo: Demo) => unknown): Promise<void> => {
    const demo = await startDemo({ dataDir, logger: recordLogs(), now: () => new Date() })
    try {
      await check(demo)
    } finally {
      await demo.stop()
    }
  }

  it('creates again only the chain whose state is torn', async () => {
    await rm(chainFile('BSC', 'exit.json'), { force: true })
    await tear(chainFile('BSC', 'state.json'))
    await startAndSee(async (demo) => {
      expect(demo.freshChains).toEqual(['BSC'])
      await demo.seed(recordRequests())
    })
    await startAndSee((demo) => expect(demo.freshChains).toEqual([]))
  })

  it('creates a chain of another version of the demo again, and logs it', async () => {
    const record = chainFile('ARBITRUM', 'chain.json')
    const known = JSON.parse(await readFile(record, 'utf8')) as object
    await writeFile(record, JSON.stringify({ ...known, layoutVersion: 1 }))
    const logger = recordLogs()
    const demo = await startDemo({ dataDir, logger, now: () => new Date() })
    try {
      expect(demo.freshChains).toEqual(['ARBITRUM'])
      const says = 'a demo chain was created by another version of the demo: it is created again'
      expect(logger.records).toContainEqual(expect.objectContaining({ level: 'warn', message: says }))
      await demo.seed(recordRequests())
    } finally {
      await demo.stop()
    }
    await startAndSee((again) => expect(again.freshChains).toEqual([]))
  })

  it('falls back to the last save when the state written at the exit is torn', async () => {
    await tear(chainFile('ETHEREUM', 'exit.json'))
    await startAndSee((demo) => expect(demo.freshChains).toEqual([]))
  })

  it('creates a chain again when its genesis differs from the record, and again until it was completed', async () => {
    const record = chainFile('POLYGON', 'chain.json')
    const known = JSON.parse(await readFile(record, 'utf8')) as object
    await writeFile(record, JSON.stringify({ ...known, genesisHash: `0x${'1'.repeat(64)}` }))
    await startAndSee((demo) => expect(demo.freshChains).toEqual(['POLYGON']))
    await startAndSee((demo) => expect(demo.freshChains).toEqual(['POLYGON']))
  })

  it('refuses a second demo on the same folder', async () => {
    await startAndSee(async () => {
      const second = startDemo({ dataDir, logger: recordLogs(), now: () => new Date() })
      await expect(second).rejects.toThrow(/another demo is using/)
    })
  })

  it('keeps its genesis over many restarts', async () => {
    for (let start = 0; start < 4; start++) {
      await startAndSee(async (demo) => {
        expect(demo.freshChains).toEqual(start === 0 ? ['POLYGON'] : [])
        await demo.seed(recordRequests())
      })
    }
  })

  it('has no id of a real chain, on which its signatures could be replayed', () => {
    const real = new Set(knownChains.map(({ chainId }) => chainId))
    expect(real).toContain('eip155:1')
    expect(DEMO_CHAINS.filter(({ chainId }) => real.has(caip2Of(chainId)))).toEqual([])
  })
})

function clientOf(config: ChainConfig): ChainClient {
  return createChainClient(createRpc(config.rpcUrls[0] as string))
}

async function paymentLogs(config: ChainConfig): Promise<Log[]> {
  const topics = [[ERC20_PAID, NATIVE_PAID, CONVERTED]]
  return clientOf(config).rpc.call<Log[]>('eth_getLogs', [{ fromBlock: '0x0', toBlock: 'latest', topics }])
}
