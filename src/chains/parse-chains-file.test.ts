import { describe, expect, it } from 'vitest'
import schema from './chains-file.schema.json' with { type: 'json' }
import type { ChainConfig } from './chains-file.ts'
import { l1Fees } from './l1-fee.ts'
import { parseChainsFile } from './parse-chains-file.ts'

const PROXY = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const TOKEN = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'

function base() {
  return {
    name: 'BASE',
    chainId: 8453,
    rpcUrls: ['https://rpc.example/${RPC_KEY}'],
    native: { symbol: 'ETH', usdFeed: PROXY, heartbeatSeconds: 3600 },
    tokens: [{ symbol: 'USDC', address: TOKEN, decimals: 6, pegUsd: '1' }],
    contracts: [{ kind: 'ERC20_FEE_PROXY', version: '0.2.0', address: PROXY, fromBlock: 100 }],
  }
}

function path(changes: object = {}) {
  return { from: 'EUR', token: 'USDC', via: ['USD'], heartbeatSeconds: 86_400, ...changes }
}

function parse(chains: unknown) {
  return parseChainsFile(JSON.stringify({ chains }), { RPC_KEY: 'secret' })
}

function setAt(target: object, [name = '', ...rest]: readonly string[], value: unknown): void {
  const entries = target as Record<string, unknown>
  if (rest.length > 0) setAt(entries[name] as object, rest, value)
  else entries[name] = value
}

describe('parseChainsFile', () => {
  it('fills defaults, expands variables and makes addresses canonical', () => {
    const parsed = parse([base()])
    expect(parsed).toEqual({
      ok: true,
      chains: [
        {
          name: 'BASE',
          chainId: 8453,
          rpcUrls: ['https://rpc.example/secret'],
          multicall: '0xca11bde05977b3631167028862be2a173976ca11',
          native: { symbol: 'ETH', decimals: 18, usdFeed: PROXY.toLowerCase(), heartbeatSeconds: 3600 },
          tokens: [{ symbol: 'USDC', address: TOKEN.toLowerCase(), decimals: 6, pegUsd: '1' }],
          contracts: [{ kind: 'ERC20_FEE_PROXY', version: '0.2.0', address: PROXY.toLowerCase(), fromBlock: 100 }],
          finality: { useFinalizedTag: true, depth: 30 },
          blockTimeSeconds: 12,
        },
      ],
    })
  })

  it('reads how amounts are converted and swapped', () => {
    const swapV3 = { factory: PROXY, quoter: TOKEN, router: PROXY }
    const given = {
      conversion: { path: PROXY, paths: [path({ via: ['USD', TOKEN] })] },
      executors: [TOKEN],
      lifi: { diamond: PROXY, receiverAcrossV4: TOKEN, executor: TOKEN, feeContracts: [PROXY] },
      swapV3,
      l1Fee: 'ARBITRUM',
      requestsPerSecond: 25,
    }
    expect(parse([{ ...base(), ...given, swapV2: { router: PROXY, factory: TOKEN } }])).toMatchObject({
      ok: true,
      chains: [
        {
          executors: [TOKEN.toLowerCase()],
          lifi: {
            diamond: PROXY.toLowerCase(),
            receiverAcrossV4: TOKEN.toLowerCase(),
            executor: TOKEN.toLowerCase(),
            feeContracts: [PROXY.toLowerCase()],
          },
          l1Fee: l1Fees.ARBITRUM,
          requestsPerSecond: 25,
          conversion: { path: PROXY.toLowerCase(), paths: [path({ via: ['USD', TOKEN.toLowerCase()] })] },
          swapV2: { router: PROXY.toLowerCase(), factory: TOKEN.toLowerCase(), through: [] },
          swapV3: { router: PROXY.toLowerCase(), fees: [100, 500, 3000, 10000] },
        },
      ],
    })
  })

  it.each([
    [1, 65],
    [137, 200],
    [42_161, 240],
    [56, 30],
  ])('makes blocks of chain %i final by a depth of %i, unless it is given', (chainId, depth) => {
    const finality = { useFinalizedTag: true, depth }
    expect(parse([{ ...base(), chainId }])).toMatchObject({ ok: true, chains: [{ finality }] })
    const given = parse([{ ...base(), chainId, finality: { depth: 7 } }])
    expect(given).toMatchObject({ ok: true, chains: [{ finality: { ...finality, depth: 7 } }] })
  })

  it('takes limits of the chain, and of single URLs', () => {
    const limited = {
      url: 'https://x/${RPC_KEY}',
      requestsPerSecond: 5,
      requestsPerDay: 9_000,
      maxLogRange: 10,
      maxBatch: 3,
    }
    const parsed = parse([{ ...base(), requestsPerDay: 50_000, rpcUrls: ['https://y', limited] }])
    expect(parsed).toMatchObject({ ok: true, chains: [{ requestsPerDay: 50_000 }] })
    const [chain] = parsed.ok ? parsed.chains : []
    const [plain, keyed = ''] = chain?.rpcUrls ?? []
    expect([plain, keyed.startsWith('https://x/')]).toEqual(['https://y', true])
    const { url: _url, ...limits } = limited
    expect(chain?.nodeLimits).toEqual({ [keyed]: limits })
  })

  it('makes the addresses of intermediaries canonical', () => {
    const parsed = parse([{ ...base(), intermediaries: [TOKEN], swapIntermediaries: [TOKEN] }])
    const addresses = [TOKEN.toLowerCase()]
    expect(parsed).toMatchObject({ ok: true, chains: [{ intermediaries: addresses, swapIntermediaries: addresses }] })
  })

  it.each<[string, path: string, value: unknown, mention: string]>([
    ['a misspelt key', 'tokenz', [], 'tokenz'],
    ['a missing name', 'name', undefined, 'name'],
    ['a lower-case name', 'name', 'base', 'name'],
    ['a chain id in words', 'chainId', '8453', 'chainId'],
    ['no RPC URL', 'rpcUrls', [], 'rpcUrls'],
    ['a URL of another scheme', 'rpcUrls', ['ws://x'], 'rpcUrls[0]'],
    ['an unset variable', 'rpcUrls', ['https://x/${NOT_SET}'], 'NOT_SET'],
    ['a short address', 'tokens.0.address', '0x12', 'tokens[0].address'],
    ['a wrong checksum', 'tokens.0.address', TOKEN.replace('C4', 'c4'), 'tokens[0].address'],
    ['19 decimals', 'tokens.0.decimals', 19, 'tokens[0].decimals'],
    ['a feed without heartbeat', 'native.heartbeatSeconds', undefined, 'heartbeatSeconds'],
    ['an unknown kind of contract', 'contracts.0.kind', 'PROXY', 'contracts[0].kind'],
    ['a negative fromBlock', 'contracts.0.fromBlock', -1, 'contracts[0].fromBlock'],
    ['a wrong checksum of an intermediary', 'intermediaries', [TOKEN.replace('C4', 'c4')], 'intermediaries[0]'],
    ['a symbol twice', 'tokens.1', { symbol: 'usdc', address: PROXY, decimals: 6 }, 'USDC'],
    ['a token twice', 'tokens.1', { symbol: 'DAI', address: TOKEN, decimals: 18 }, 'given twice'],
    ['an unknown currency', 'conversion', { path: PROXY, paths: [path({ from: 'XQQ' })] }, 'not an ISO 4217 code'],
    [
      'an unknown currency in between',
      'conversion',
      { path: PROXY, paths: [path({ via: ['XQQ'] })] },
      'not an ISO 4217 code',
    ],
    [
      'a conversion into an unknown token',
      'conversion',
      { path: PROXY, paths: [path({ token: 'NONE' })] },
      'not a token of BASE',
    ],
    ['a conversion twice', 'conversion', { path: PROXY, paths: [path(), path()] }, 'given twice'],
    ['a path without its contract', 'conversion', { paths: [path()] }, 'path'],
    [
      'a swap through an unknown token',
      'swapV2',
      { router: PROXY, factory: TOKEN, through: ['NONE'] },
      'not a token of BASE',
    ],
    ['a broken router', 'swapV2', { router: PROXY.replace('C', 'c'), factory: TOKEN }, 'swapV2.router'],
    ['no fee tier', 'swapV3', { factory: PROXY, quoter: PROXY, router: PROXY, fees: [] }, 'fees'],
    ['another kind of rollup', 'l1Fee', 'ZK', 'OP_STACK, ARBITRUM'],
    ['no requests at all', 'requestsPerSecond', 0, 'requestsPerSecond must be >= 1'],
    ['a broken swap', 'swapIntermediaries', [TOKEN.replace('C', 'c')], 'swapIntermediaries[0]'],
    [
      'an explorer over http',
      'explorer',
      { transaction: 'http://a.example/{hash}', address: 'https://a.example/{address}' },
      'explorer.transaction',
    ],
    [
      'an explorer without a place for the address',
      'explorer',
      { transaction: 'https://a.example/{hash}', address: 'https://a.example' },
      'explorer.address',
    ],
    ['half an explorer', 'explorer', { transaction: 'https://a.example/{hash}' }, 'explorer'],
    ['a broken executor', 'executors', [TOKEN.replace('C', 'c')], 'executors[0]'],
    ['a broken diamond', 'lifi', { diamond: TOKEN.replace('C', 'c'), receiverAcrossV4: TOKEN }, 'lifi.diamond'],
    ['a broken oracle', 'screening', { oracle: TOKEN.replace('C', 'c') }, 'screening.oracle'],
    ['no oracle', 'screening', {}, "must have required property 'oracle'"],
    ['an oracle of another form', 'screening', { oracle: '0x12' }, 'screening.oracle'],
    ['no receiver', 'lifi', { diamond: TOKEN }, 'receiverAcrossV4'],
    [
      'an executor that is not followed',
      'lifi',
      { diamond: TOKEN, receiverAcrossV4: TOKEN, executor: PROXY },
      'CROSSCHAIN',
    ],
    ['a contract twice', 'contracts.1', base().contracts[0], 'given twice'],
    ['no requests a day', 'requestsPerDay', 0, 'requestsPerDay must be >= 1'],
    ['half a request a day', 'requestsPerDay', 0.5, 'requestsPerDay must be integer'],
    ['a URL that is a number', 'rpcUrls', [7], 'rpcUrls[0] must be string'],
    ['a URL without its address', 'rpcUrls', [{ maxBatch: 3 }], "rpcUrls[0] must have required property 'url'"],
    ['a URL of another scheme with limits', 'rpcUrls', [{ url: 'ws://x' }], 'rpcUrls[0]'],
    [
      'a misspelt limit',
      'rpcUrls',
      [{ url: 'https://x', maxBatches: 3 }],
      'rpcUrls[0] must NOT have additional properties: "maxBatches"',
    ],
    [
      'no rate of a URL',
      'rpcUrls',
      [{ url: 'https://x', requestsPerSecond: 0 }],
      'rpcUrls[0].requestsPerSecond must be >= 1',
    ],
    [
      'no budget of a URL',
      'rpcUrls',
      [{ url: 'https://x', requestsPerDay: -1 }],
      'rpcUrls[0].requestsPerDay must be >= 1',
    ],
    ['a range of no blocks', 'rpcUrls', [{ url: 'https://x', maxLogRange: 0 }], 'rpcUrls[0].maxLogRange must be >= 1'],
    ['a batch of no calls', 'rpcUrls', [{ url: 'https://x', maxBatch: 0 }], 'rpcUrls[0].maxBatch must be >= 1'],
    ['a batch in words', 'rpcUrls', [{ url: 'https://x', maxBatch: '3' }], 'rpcUrls[0].maxBatch must be integer'],
    ['a finality depth of 0', 'finality', { depth: 0 }, 'finality.depth'],
    ['negative sampleLogs', 'sampleLogs', -1, 'sampleLogs must be >= 0'],
    ['half of sampleLogs', 'sampleLogs', 0.5, 'sampleLogs must be integer'],
    ['sampleLogs in words', 'sampleLogs', 'all', 'sampleLogs must be integer'],
    ['a negative startBlock', 'startBlock', -1, 'startBlock must be >= 0'],
    ['half a startBlock', 'startBlock', 1.5, 'startBlock must be integer'],
    ['a startBlock in words', 'startBlock', '1', 'startBlock must be integer'],
    ['a time that is none', 'since', 'yesterday', 'since: "yesterday" is no date'],
    ['a time without offset', 'since', '2026-01-31T00:00:00', 'it has no offset'],
    ['a day that never was', 'since', '2026-02-30', 'no such day'],
    ['a time as a number', 'since', 1_700_000_000, 'since must be string'],
  ])('refuses %s', (_, path, value, mention) => {
    const chain = base()
    setAt(chain, path.split('.'), value)
    const parsed = parse([chain])
    const faults = parsed.ok ? '' : parsed.faults.join('\n')
    expect(faults).toContain(mention)
    expect(faults).not.toContain('secret')
  })

  it('reads since as a moment or a day, and not beside startBlock', () => {
    const since = (text: string) => parse([{ ...base(), since: text }])
    expect(since('2026-01-31')).toMatchObject({ ok: true, chains: [{ since: new Date('2026-01-31T00:00:00Z') }] })
    expect(since('2026-01-31T01:30:00+01:00')).toMatchObject({ chains: [{ since: new Date('2026-01-31T00:30:00Z') }] })
    const both = parse([{ ...base(), since: '2026-01-31', startBlock: 5 }])
    expect(both.ok ? [] : both.faults).toEqual([expect.stringContaining('given beside startBlock 5')])
  })

  it.each(['', '{', '[]', '{"chains":[]}', 'null'])('refuses the file %s', (text) => {
    expect(parseChainsFile(text, {}).ok).toBe(false)
  })

  it('drops RPC URLs of an optional chain whose variables are not set, and the chain when no URL is left', () => {
    const urls = (chainId: number) => [`https://x/\${KEY_${chainId}}`, `https://y/\${KEY_${chainId}}/\${SECOND}`]
    const optional = { ...base(), optional: true }
    const chains = [
      { ...optional, rpcUrls: urls(1) },
      { ...optional, name: 'BSC', chainId: 56, rpcUrls: urls(56) },
    ]
    const text = JSON.stringify({ chains })
    const one = parseChainsFile(text, { KEY_56: 'a', KEY_1: '' })
    expect(one).toMatchObject({ ok: true, chains: [{ name: 'BSC', rpcUrls: ['https://x/a'] }] })
    expect(one.ok && one.chains[0]).not.toHaveProperty('optional')
    const two = parseChainsFile(text, { KEY_56: 'a', SECOND: 'b' })
    expect(two).toMatchObject({ ok: true, chains: [{ rpcUrls: ['https://x/a', 'https://y/a/b'] }] })
    const none = parseChainsFile(text, {})
    expect(none.ok ? '' : none.faults.join('\n')).toMatch(/no chain is left.* KEY_1, KEY_56$/)
  })

  it('reports the faults of an optional chain that is dropped', () => {
    const left = { ...base(), name: 'BSC', chainId: 56, optional: true, rpcUrls: ['https://x/${NOT_SET}'] }
    const parsed = parse([base(), { ...left, intermediaries: [TOKEN.replace('C', 'c')] }])
    expect(parsed.ok ? [] : parsed.faults).toEqual([expect.stringContaining('chains[1].intermediaries[0]')])
  })

  it('refuses two chains of one name or id, and reports all faults at once', () => {
    const parsed = parse([base(), { ...base(), rpcUrls: ['ftp://x'] }])
    expect(parsed.ok ? [] : parsed.faults).toHaveLength(3)
  })
})

/** Every field that a chain may have. */
const chainFields = {
  name: true,
  chainId: true,
  rpcUrls: true,
  requestsPerSecond: true,
  requestsPerDay: true,
  nodeLimits: true,
  multicall: true,
  native: true,
  tokens: true,
  contracts: true,
  intermediaries: true,
  swapIntermediaries: true,
  executors: true,
  lifi: true,
  screening: true,
  conversion: true,
  swapV2: true,
  swapV3: true,
  l1Fee: true,
  startBlock: true,
  since: true,
  sampleLogs: true,
  explorer: true,
  finality: true,
  blockTimeSeconds: true,
} as const satisfies Record<keyof ChainConfig, true>

it('the schema has every field of a chain', () => {
  // `optional` decides whether there is a chain; `nodeLimits` are read from the entries of `rpcUrls`.
  const inFile = Object.keys(schema.$defs.chain.properties).filter((name) => name !== 'optional')
  expect(inFile.toSorted()).toEqual(
    Object.keys(chainFields)
      .filter((name) => name !== 'nodeLimits')
      .toSorted(),
  )
})
