/** The command that checks a chains file against its chains, on a real chain, behind a proxy that misbehaves as nodes do. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ChainConfig, LifiConfig, PaymentContractConfig } from '../../src/chains/chains-file.ts'
import { checkChain } from '../../src/detection/check/check-chain.ts'
import type { CheckedFact } from '../../src/detection/check/checked-node.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { deployLifi, lifiConfigOf, type TestLifi } from '../support/chains/lifi-contracts.ts'
import { type Meddle, type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { canonical } from '../support/detection.ts'
import { runWaybill } from '../support/process.ts'
import { runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let chain: TestChain
let proxy: RpcProxy
let lifi: TestLifi
let folder: string
/** A config that is right about the chain. */
let config: ChainConfig
let now: Date

beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_581 })
  lifi = await deployLifi(chain)
  proxy = await startRpcProxy(chain.rpcUrl)
  folder = await makeTempFolder('check')
  const described = chain.config({ name: 'BASE' })
  const contracts = await Promise.all(
    described.contracts.map(async (each) => ({ ...each, fromBlock: await creationOf(each) })),
  )
  config = { ...described, contracts, rpcUrls: [proxy.url], finality: { useFinalizedTag: true, depth: 3 } }
  await chain.mine({ blocks: 8 })
  now = new Date((await chain.client.head()).timestampSec * 1_000 + 5_000)
})
afterEach(() => {
  proxy.meddle()
  proxy.fail()
  proxy.refuseBatches(false)
})
afterAll(async () => {
  await proxy?.stop()
  await chain?.stop()
  await rm(folder, { recursive: true, force: true })
})

/** Finds it block by block, which the command does not need to do. */
async function creationOf({ address }: PaymentContractConfig): Promise<number> {
  for (let block = 0; ; block++) {
    const code = await chain.client.rpc.call<string>('eth_getCode', [address, `0x${block.toString(16)}`])
    if (code !== '0x') return block
  }
}

const check = async (change: Partial<ChainConfig> = {}, timeoutMs = 10_000): Promise<readonly CheckedFact[]> => {
  const [checked] = await checkChain({ ...config, ...change }, { clock: () => now, timeoutMs, maxWaitMs: timeoutMs })
  return checked?.facts ?? []
}

/** The facts that are not `ok`, as text. */
const unlike = (facts: readonly CheckedFact[]) =>
  facts
    .filter(({ verdict }) => verdict !== 'ok')
    .map((fact) => `${fact.check} ${fact.subject} ${fact.verdict}: ${fact.detail}`)

const refuse = (message: string, code = -32_000) => Promise.resolve({ rpcError: { code, message } })

/** Refuses the state of blocks below one, as a node that is no archive does. */
const prunedBeneath =
  (oldest: number): Meddle =>
  ({ method, params }) => {
    const isState = ['eth_getBalance', 'eth_getCode', 'eth_call'].includes(method)
    return isState && params[1] !== 'latest' && Number(params[1]) < oldest ? refuse('missing trie node') : undefined
  }

describe('checkChain', () => {
  it('finds everything right, by each kind of check', async () => {
    const facts = await check()
    expect(unlike(facts)).toEqual([])
    const kinds = [
      'chain id',
      'head',
      'finalized',
      'batches',
      'log range',
      'archive',
      'code',
      'fromBlock',
      'screening',
      'decimals',
      'symbol',
      'feed',
      'conversion',
    ]
    expect([...new Set(facts.map((fact) => fact.check))]).toEqual(kinds)
    const count = (kind: string) => facts.filter((fact) => fact.check === kind).length
    // Multicall, the conversion path, the oracle, five contracts, four tokens and the feeds of these and of the coin.
    expect([count('code'), count('fromBlock'), count('symbol'), count('feed')]).toEqual([17, 5, 4, 5])
    expect(count('conversion')).toBe(5)
  })

  it('reports a node of another chain, and asks it nothing more', async () => {
    proxy.calls.length = 0
    const facts = await check({ chainId: 1 })
    expect(unlike(facts)).toEqual([expect.stringMatching(/^chain id - wrong: .* serves chain 31581, not 1$/)])
    expect(proxy.calls.map(({ method }) => method)).toEqual(['eth_chainId'])
  })

  const first = () => config.contracts[0] as PaymentContractConfig
  const withFirst = (change: Partial<PaymentContractConfig>) => ({
    contracts: [{ ...first(), ...change }, ...config.contracts.slice(1)],
  })
  const token = () => config.tokens[0] as ChainConfig['tokens'][number]
  const withToken = (change: object) => ({ tokens: [{ ...token(), ...change }, ...config.tokens.slice(1)] })
  const withPath = (change: object) => {
    const { path = nobody, paths = [] } = config.conversion ?? {}
    return { conversion: { path, paths: paths.map((each) => (each.token === 'USDC' ? { ...each, ...change } : each)) } }
  }
  const nobody = canonical('0x00000000000000000000000000000000000000aa')

  it.each<[string, () => Partial<ChainConfig>, () => (string | RegExp)[]]>([
    [
      'a missing contract',
      () => withFirst({ address: nobody }),
      () => [
        `code ERC20_FEE_PROXY 0.2.0 wrong: there is no contract at ${nobody}`,
        /^fromBlock ERC20_FEE_PROXY 0.2.0 note: there is no contract at block \d+ yet$/,
      ],
    ],
    ['a missing multicall', () => ({ multicall: nobody }), () => [/^code multicall wrong: there is no contract/]],
    ['a missing swap intermediary', () => ({ swapIntermediaries: [nobody] }), () => [/^code swapIntermediaries wrong/]],
    [
      'a missing oracle',
      () => ({ screening: { oracle: nobody } }),
      () => [
        /^code screening.oracle wrong: there is no contract/,
        'screening screening.oracle wrong: isSanctioned() answers neither true nor false',
      ],
    ],
    [
      'an oracle that is something else',
      () => ({ screening: { oracle: config.contracts[0]?.address ?? nobody } }),
      () => [/^screening screening.oracle wrong: isSanctioned\(\) fails: /],
    ],
    ['a missing intermediary', () => ({ intermediaries: [nobody] }), () => [/^code intermediaries wrong/]],
    [
      'a fromBlock that is too high',
      () => withFirst({ fromBlock: first().fromBlock + 1 }),
      () => [
        `fromBlock ERC20_FEE_PROXY 0.2.0 wrong: it is older: payments before block ${first().fromBlock + 1} are not found`,
      ],
    ],
    [
      'a fromBlock above the head',
      () => withFirst({ fromBlock: 10 ** 6 }),
      () => [/wrong: block 1000000 is above the head/],
    ],
    [
      'a fromBlock that is lower than necessary',
      () => withFirst({ fromBlock: 0 }),
      () => [/note: there is no contract at block 0 yet/],
    ],
    ['other decimals', () => withToken({ decimals: 18 }), () => ['decimals USDC wrong: 6, and 18 in the file']],
    [
      'another token',
      () => withToken({ symbol: 'USDX' }),
      () => ['symbol USDX wrong: "USDC" on the chain: another token?'],
    ],
    [
      'a bridged token that only the file names so',
      () => withToken({ symbol: 'USDC.e', bridged: true }),
      () => ['symbol USDC.e note: "USDC" on the chain'],
    ],
    [
      'a feed that is something else',
      () => withToken({ usdFeed: token().address }),
      () => ['feed USDC wrong: latestRoundData() answers no price'],
    ],
    [
      'a feed that is old',
      () => withToken({ heartbeatSeconds: 1 }),
      () => [/^feed USDC wrong: its answer is \d+ s old, older than 1 s/],
    ],
    [
      'a conversion through a currency that the contract does not know',
      () => withPath({ via: ['EUR'] }),
      () => [/^conversion USD to USDC wrong: getRate\(\) fails: .*revert/],
    ],
    [
      'a conversion whose feeds are old',
      () => withPath({ heartbeatSeconds: 1 }),
      () => [/^conversion USD to USDC wrong: its oldest feed is \d+ s old, older than 2 s: nothing can be converted/],
    ],
    [
      'a finalized block that is not used',
      () => ({ finality: { useFinalizedTag: false, depth: 7 } }),
      () => [/^finalized - note: block \d+, \d+ below the head; the chains file does not use it, so the depth of 7/],
    ],
  ])('reports %s', async (_, change, says) => {
    const reported = unlike(await check(change()))
    const expected = says()
    expect(reported).toHaveLength(expected.length)
    for (const [n, text] of expected.entries()) expect(reported[n]).toMatch(text)
  })

  const withLifi = (change: Partial<LifiConfig> = {}): Partial<ChainConfig> => {
    const described = lifiConfigOf(lifi)
    return { ...described, lifi: { ...(described.lifi as LifiConfig), ...change } }
  }

  it('finds the contracts of LI.FI right', async () => {
    const facts = await check(withLifi())
    expect(unlike(facts)).toEqual([])
    expect(facts.filter((fact) => fact.check === 'lifi').map(({ subject, detail }) => [subject, detail])).toEqual([
      ['startBridgeTokensViaAcrossV4', `in ${lifi.diamond}`],
      ['swapAndStartBridgeTokensViaAcrossV4', `in ${lifi.diamond}`],
      ['receiver executor', lifi.receiver],
    ])
    const checked = facts.filter(({ check: kind }) => kind === 'code').map(({ detail }) => detail)
    expect(checked).toEqual(expect.arrayContaining([lifi.diamond, lifi.feeForwarder, lifi.receiver]))
  })

  it.each<[string, () => Partial<LifiConfig>, () => (string | RegExp)[]]>([
    [
      'a receiver that works with another executor',
      () => ({ executor: lifi.feeForwarder }),
      () => [`lifi receiver executor wrong: ${lifi.receiver}, and ${lifi.feeForwarder} in the file`],
    ],
    [
      'a receiver that is something else',
      () => ({ receiverAcrossV4: lifi.feeForwarder }),
      () => ['lifi receiver executor wrong: the receiver has no executor: another contract?'],
    ],
    [
      'a receiver without a spoke pool',
      () => ({ spokePool: lifi.feeForwarder }),
      () => ['lifi receiver spokePool wrong: the receiver has no spokePool: another contract?'],
    ],
    [
      'a diamond that is something else',
      () => ({ diamond: lifi.feeForwarder }),
      () => [/^lifi startBridge.* unknown: facetAddress\(\) answers no address/, /^lifi swapAndStartBridge.* unknown/],
    ],
    [
      'missing contracts',
      () => ({ diamond: nobody, feeContracts: [canonical('0x00000000000000000000000000000000000000ab')] }),
      () => [
        /^code lifi.diamond wrong/,
        /^code lifi.feeContracts wrong/,
        /^lifi startBridge.* unknown/,
        /^lifi swapAndStartBridge.* unknown/,
      ],
    ],
  ])('reports of LI.FI %s', async (_, change, says) => {
    const reported = unlike(await check(withLifi(change())))
    const expected = says()
    expect(reported).toHaveLength(expected.length)
    for (const [n, text] of expected.entries()) expect(reported[n]).toMatch(text)
  })

  it('reports a token that is no token', async () => {
    const reported = unlike(await check(withToken({ address: first().address, usdFeed: token().usdFeed })))
    expect(reported).toEqual([
      expect.stringMatching(/^decimals USDC wrong: decimals\(\) fails: .*revert/),
      'symbol USDC unknown: symbol() answers no text',
      expect.stringMatching(/^conversion USD to USDC wrong: getRate\(\) fails: .*revert/),
    ])
  })

  it('reports a head that no longer moves', async () => {
    const before = now
    now = new Date(now.getTime() + 600_000)
    const reported = unlike(await check({ native: { symbol: 'ETH', decimals: 18 }, tokens: [] }))
    now = before
    expect(reported).toEqual([expect.stringMatching(/^head - wrong: block \d+, 60\d s old: the node has stopped/)])
  })

  it('reports what a node lacks: finalized, batches, wide ranges of logs', async () => {
    proxy.refuseBatches(true)
    proxy.meddle(({ method, params }) => {
      if (params[0] === 'finalized') return refuse('unknown block tag')
      if (method !== 'eth_getLogs') return undefined
      const [{ fromBlock, toBlock }] = params as [{ fromBlock: string; toBlock: string }]
      return Number(toBlock) - Number(fromBlock) >= 7 ? refuse('block range is limited to 7') : undefined
    })
    expect(unlike(await check())).toEqual([
      'finalized - note: it has no finalized block: a block is final 3 blocks below the head',
      'batches - note: it refuses batches: following and back-filling are slower',
      expect.stringMatching(/^log range - note: it refuses \d+ blocks, so back-filling is slower: .*limited to 7$/),
    ])
  })

  it('says that nothing is taken back where the head is final at once', async () => {
    proxy.meddle(({ params }) =>
      params[0] === 'finalized' ? chain.client.rpc.call('eth_getBlockByNumber', ['latest', false]) : undefined,
    )
    expect(unlike(await check())).toEqual([
      expect.stringMatching(/^finalized - note: .*every block counts as final at once/),
    ])
  })

  it('reports a node that refuses all logs', async () => {
    proxy.meddle(({ method }) =>
      method === 'eth_getLogs' ? refuse('the method eth_getLogs is not available') : undefined,
    )
    expect(unlike(await check())).toEqual([
      expect.stringMatching(/^log range - wrong: .*eth_getLogs is not available$/),
    ])
  })

  it('reports what a node that is no archive can and cannot know about a creation', async () => {
    const late = { ...first(), address: canonical(await chain.deployErc20FeeProxy()) }
    await chain.mine({ blocks: 10 })
    const created = await creationOf(late)
    const only = (fromBlock: number) => ({ contracts: [{ ...late, fromBlock }] })
    proxy.meddle(prunedBeneath(created - 1))
    expect(unlike(await check(only(created)))).toEqual([])
    proxy.meddle(prunedBeneath(created))
    expect(unlike(await check(only(created)))).toEqual([
      `fromBlock ERC20_FEE_PROXY 0.2.0 unknown: the node has no state of block ${created - 1}`,
    ])
    proxy.meddle(prunedBeneath(created + 5))
    expect(unlike(await check(only(created)))).toEqual([
      expect.stringMatching(new RegExp(`^archive - note: it has no state of block ${created}: prices`)),
      `fromBlock ERC20_FEE_PROXY 0.2.0 unknown: the node has no state of block ${created - 1}`,
    ])
    const wrong = [expect.stringMatching(/^fromBlock ERC20_FEE_PROXY 0.2.0 wrong: it is older/)]
    expect(unlike(await check(only(created + 6)))).toEqual(wrong)
  })

  it('says so where a real node has no older state', async () => {
    const old = await startTestChain({ chainId: 31_582 })
    await old.mine({ blocks: 60 })
    const [checked] = await checkChain(old.config({ name: 'OLD' }), { clock: () => now })
    await old.stop()
    const reported = unlike(checked?.facts ?? []).filter((text) => !text.startsWith('finalized'))
    expect(reported[0]).toMatch(/^archive - note: it has no state of block \d+: prices/)
    expect(reported.slice(1)).toEqual(
      Array(5).fill(expect.stringMatching(/^fromBlock .* unknown: the node has no state of block \d+$/)),
    )
  })

  it.each<[string, () => void, RegExp]>([
    ['fails', () => proxy.fail(503), /^answers - wrong: .* HTTP status 503$/],
    ['is something else', () => proxy.fail(200, '<html>'), /^answers - wrong: .* its answer is not JSON$/],
    ['limits requests', () => proxy.fail(429), /^answers - wrong: .* too many requests$/],
    ['never answers', () => proxy.meddle(() => new Promise(() => {})), /^answers - wrong: .* no answer within \d+ ms$/],
  ])('reports a node that %s', async (_, break_, says) => {
    break_()
    expect(unlike(await check({}, 300))).toEqual([expect.stringMatching(says)])
  })
})

describe('waybill chains check', () => {
  const settings = async (...chains: object[]) => {
    const file = join(folder, 'chains.json')
    await writeFile(file, JSON.stringify({ chains }))
    return { CHAINS_FILE: file, DATA_DIR: '/nowhere', NODE_KEY: 'k3y-of-the-node' }
  }
  /** Without feeds and a head that grow old while tests run, since the command uses the real clock. */
  const plain = (name: string, change: object = {}) => ({
    ...config,
    name,
    blockTimeSeconds: 3_600,
    native: { symbol: 'ETH', decimals: 18 },
    tokens: config.tokens.map(({ symbol, address, decimals }) => ({ symbol, address, decimals })),
    ...change,
  })

  it('prints a line for each fact, separated by tabs, and exits with 0 where all is well', async () => {
    const { code, stdout, stderr } = await runWaybill(['chains', 'check'], await settings(plain('BASE')))
    const lines = stdout.trimEnd().split('\n')
    const host = new URL(proxy.url).host
    expect([code, stderr]).toEqual([0, `BASE at ${host}: ${lines.length} ok, 0 note, 0 unknown, 0 wrong\n`])
    expect(lines.map((line) => line.split('\t').length)).toEqual(lines.map(() => 6))
    expect(lines[0]).toBe(`BASE\t${host}\tchain id\t-\tok\t31581`)
  })

  it('checks each URL, exits with 1 where something is wrong, and shows only the host of a URL', async () => {
    const { host } = new URL(proxy.url)
    const nowhere = '127.0.0.1:1'
    const rpcUrls = [`http://user:passw0rd@${nowhere}/`, `http://${host}/v3/$\{NODE_KEY}?apikey=qu3ry-secret`]
    proxy.meddle(({ method }) =>
      method === 'eth_getLogs' ? refuse('not for k3y-of-the-node\nor qu3ry-secret\tat all') : undefined,
    )
    const { code, stdout, stderr } = await runWaybill(['chains', 'check'], await settings(plain('BASE', { rpcUrls })))
    expect(code).toBe(1)
    expect(stdout).toMatch(new RegExp(`^BASE\\t${nowhere}\\tanswers\\t-\\twrong\\t`, 'm'))
    expect(stdout).toContain(
      `BASE\t${host}\tlog range\t-\twrong\t${host}: eth_getLogs failed with code -32000: not for … or … at all\n`,
    )
    for (const secret of ['passw0rd', 'k3y-of-the-node', 'qu3ry-secret', '/v3/']) {
      expect(stdout + stderr).not.toContain(secret)
    }
  })

  it('checks only the chain that --chain names', async () => {
    const file = await settings(plain('BASE'), plain('POLYGON', { chainId: 137 }))
    const checkOne = (chain: string) => runCommand(file, ['chains', 'check', '--chain', chain])
    expect(await checkOne('base')).toMatchObject({ code: 0 })
    const other = await checkOne('137')
    expect([other.code, other.stdout]).toEqual([
      1,
      expect.stringMatching(/^POLYGON\t[^\t]+\tchain id\t-\twrong\t[^\n]+\n$/),
    ])
    const none = await checkOne('FANTOM')
    expect([none.code, none.stdout]).toEqual([2, ''])
    expect(none.stderr).toContain('the chains file has no chain "FANTOM"; it has BASE, POLYGON')
  })
})
