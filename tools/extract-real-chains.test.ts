import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { getAddress } from 'viem'
import { describe, expect, it } from 'vitest'
import type { ChainConfig } from '../src/chains/chains-file.ts'
import { parseChainsFile } from '../src/chains/parse-chains-file.ts'
import { knownChains } from '../src/domain/chain.ts'
import table from './real-chains.json' with { type: 'json' }
import { root } from './run-command.ts'

// These tests check the form of the file only; they call no real network.

const text = readFileSync(join(root, 'chains/mainnets.json'), 'utf8')
const names = ['ETHEREUM', 'POLYGON', 'ARBITRUM', 'OPTIMISM', 'BASE', 'BSC', 'SEPOLIA']

function parse(environment: Record<string, string>): readonly ChainConfig[] {
  const parsed = parseChainsFile(text, environment)
  if (!parsed.ok) throw new Error(parsed.faults.join('\n'))
  return parsed.chains
}

const chains = parse(Object.fromEntries(names.map((name) => [`${name}_RPC_URL`, 'http://127.0.0.1:1'])))

function chainNamed(name: string): ChainConfig {
  const chain = chains.find((each) => each.name === name)
  if (chain === undefined) throw new Error(`no ${name}`)
  return chain
}

function addressesIn(value: unknown): string[] {
  return [...JSON.stringify(value).matchAll(/0x[0-9a-fA-F]{40}(?![0-9a-fA-F])/g)].map(([address]) => address)
}

describe('the chains file of the real networks', () => {
  it('is what its sources give', () => {
    const check = ['tools/extract-real-chains.ts', '--check']
    const { status, stderr } = spawnSync('node', check, { cwd: root, encoding: 'utf8' })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })

  it('names the schema beside the parser', () => {
    const { $schema } = JSON.parse(text) as { $schema: string }
    expect(existsSync(join(root, 'chains', $schema))).toBe(true)
  })

  it('has the seven chains, each under the id of the built-in table', () => {
    expect(chains.map(({ name }) => name)).toEqual(names)
    for (const { name, chainId } of chains) {
      expect(knownChains.find((known) => known.chainId === `eip155:${chainId}`)?.name).toBe(name)
    }
  })

  it('serves the chains whose RPC URL is set, and asks for one where none is', () => {
    const one = parse({ BASE_RPC_URL: 'https://a.example', BASE_RPC_URL_2: 'https://b.example', BSC_RPC_URL_2: '' })
    expect(one.map(({ name, rpcUrls }) => [name, rpcUrls])).toEqual([
      ['BASE', ['https://a.example', 'https://b.example']],
    ])
    const none = parseChainsFile(text, {})
    expect(none.ok ? '' : none.faults.join()).toContain('ETHEREUM_RPC_URL, POLYGON_RPC_URL, ARBITRUM_RPC_URL')
  })

  it('writes every address with its EIP-55 checksum', () => {
    const addresses = addressesIn(JSON.parse(text))
    expect(addresses.length).toBeGreaterThan(150)
    expect(addresses.filter((address) => getAddress(address) !== address)).toEqual([])
  })

  // Each version that Request has deployed; several versions at one address are listed once, under the newest.
  it.each([
    ['ETHEREUM', ['0.2.0'], ['0.1.0', '0.2.0'], ['0.1.0', '0.1.1'], ['0.1.0', '0.2.0']],
    ['POLYGON', ['0.1.0', '0.2.0'], ['0.1.0', '0.2.0'], ['0.1.0'], ['0.1.0', '0.2.0']],
    ['ARBITRUM', ['0.2.0'], ['0.1.0', '0.2.0'], ['0.1.1'], ['0.2.0']],
    ['OPTIMISM', ['0.2.0'], ['0.2.0'], ['0.1.2'], ['0.2.0']],
    ['BASE', ['0.2.0'], ['0.2.0'], ['0.1.2'], ['0.2.1']],
    ['BSC', ['0.2.0'], ['0.1.0', '0.2.0'], ['0.1.2'], ['0.2.0']],
    ['SEPOLIA', ['0.2.0'], ['0.2.0'], ['0.1.2'], ['0.2.1']],
  ])(
    'has every version of the proxies on %s, with the block of its creation',
    (name, erc20, native, conversion, ethConversion) => {
      const { contracts } = chainNamed(name)
      const versionsOf = (kind: string) => contracts.filter((each) => each.kind === kind).map(({ version }) => version)
      expect(versionsOf('ERC20_FEE_PROXY')).toEqual(erc20)
      expect(versionsOf('ETHEREUM_FEE_PROXY')).toEqual(native)
      expect(versionsOf('ERC20_CONVERSION_PROXY')).toEqual(conversion)
      expect(versionsOf('ETH_CONVERSION_PROXY')).toEqual(ethConversion)
      expect(versionsOf('ERC20_SWAP_TO_PAY')).toEqual(['0.4.0'])
      expect(contracts.filter(({ fromBlock }) => fromBlock < 1_000_000)).toEqual([])
    },
  )

  it('counts escrows among the intermediaries, and apart from them the swaps that nothing is paid through', () => {
    const { contracts, intermediaries, swapIntermediaries } = chainNamed('ETHEREUM')
    expect(intermediaries).toEqual(['0x7dfd5955a1ed6bf74ccf8e24ff53e0a9a7e9f477'])
    expect(
      contracts.filter(({ kind }) => kind.startsWith('BATCH_')).map(({ kind, address }) => [kind, address]),
    ).toEqual([
      ['BATCH_PAYMENTS', '0x0dd57ffe83a53bcbd657e234b16a3e74fedb8fba'],
      ['BATCH_CONVERSION_PAYMENTS', '0x3cf63891928b8ceebb81c95426600a18cd59c03f'],
    ])
    expect(swapIntermediaries).toEqual(
      expect.arrayContaining([
        '0x8433ed02a32154aa0edbae12b1c8816205d6d02c',
        '0x3b4837c9f4a606b71e61fd56db6241781194df92',
      ]),
    )
    for (const chain of chains) {
      const all = [...chain.contracts.map(({ address }) => address), ...(chain.intermediaries ?? [])]
      const listed = [...all, ...(chain.swapIntermediaries ?? [])]
      expect(new Set(listed).size).toBe(listed.length)
    }
  })

  it('has the factory of SingleRequestProxies on every chain', () => {
    for (const { contracts } of chains) {
      expect(contracts.filter(({ kind }) => kind === 'SINGLE_REQUEST_PROXY_FACTORY')).toHaveLength(1)
    }
  })

  it.each([
    ['ETHEREUM', 'ETH', { USDC: 6, USDT: 6, DAI: 18, WETH: 18 }],
    ['POLYGON', 'POL', { USDC: 6, 'USDC.e': 6, USDT: 6, DAI: 18, WETH: 18, WPOL: 18 }],
    ['ARBITRUM', 'ETH', { USDC: 6, 'USDC.e': 6, USDT: 6, DAI: 18, WETH: 18 }],
    ['OPTIMISM', 'ETH', { USDC: 6, 'USDC.e': 6, USDT: 6, DAI: 18, WETH: 18 }],
    ['BASE', 'ETH', { USDC: 6, USDT: 6, DAI: 18, WETH: 18 }],
    ['BSC', 'BNB', { USDC: 18, USDT: 18, DAI: 18, WBNB: 18 }],
    ['SEPOLIA', 'ETH', { USDC: 6, WETH: 18, FAU: 18 }],
  ])('has the coin and the tokens of %s with their decimals', (name, coin, decimals) => {
    const { native, tokens } = chainNamed(name)
    expect(native).toMatchObject({ symbol: coin, decimals: 18, usdFeed: expect.anything() })
    expect(Object.fromEntries(tokens.map((token) => [token.symbol, token.decimals]))).toEqual(decimals)
  })

  it('marks the bridged USDC, and the USDT that demands a reset of its allowance', () => {
    const marked = (mark: 'bridged' | 'approveReset') =>
      chains.flatMap(({ name, tokens }) =>
        tokens.filter((token) => token[mark]).map(({ symbol }) => `${symbol}-${name}`),
      )
    expect(marked('bridged')).toEqual(['USDC.e-POLYGON', 'USDC.e-ARBITRUM', 'USDC.e-OPTIMISM'])
    expect(marked('approveReset')).toEqual(['USDT-ETHEREUM'])
  })

  it('pins LI.FI on every chain but Sepolia, each with its executor among those that are followed', () => {
    const pinned = chains.filter(({ lifi }) => lifi !== undefined).map(({ name }) => name)
    expect(pinned).toEqual(names.filter((name) => name !== 'SEPOLIA'))
    for (const { lifi, executors = [] } of chains) {
      if (lifi === undefined) continue
      expect(lifi.diamond).toBe('0x1231deb6f5749ef6ce6943a275a1d3e7486f4eae')
      expect(executors).toContain(lifi.executor)
      expect(lifi.feeContracts).toHaveLength(2)
      expect(new Set(Object.values(lifi).flat()).size).toBe(6)
    }
  })

  it('leaves feeds longer than their heartbeat', () => {
    const published = new Map(
      table.chains.flatMap(({ name, feeds }) =>
        Object.values(feeds).map(({ address, heartbeatSeconds }) => [
          `${name} ${address.toLowerCase()}`,
          heartbeatSeconds,
        ]),
      ),
    )
    const priced = chains.flatMap(({ name, native, tokens }) =>
      [native, ...tokens].flatMap(({ symbol, usdFeed = '', heartbeatSeconds = 0 }) => {
        const heartbeat = published.get(`${name} ${usdFeed}`)
        return heartbeat === undefined ? [] : [{ id: `${symbol}-${name}`, left: heartbeatSeconds - heartbeat }]
      }),
    )
    expect(priced.length).toBeGreaterThan(30)
    expect(priced.filter(({ left }) => left < 60)).toEqual([])
  })

  it('says where each hand-kept value was found', () => {
    const known = new Set(Object.keys(table.sources))
    const used = new Set<string>()
    const visit = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return
      const { sources, ...rest } = value as { sources?: string[] }
      for (const source of sources ?? []) used.add(source)
      const own = Object.values(rest).filter((each) => typeof each === 'string')
      if (sources === undefined) expect(addressesIn(own)).toEqual([])
      else expect(sources.length).toBeGreaterThan(0)
      for (const each of Object.values(rest)) visit(each)
    }
    visit(table.chains)
    expect([...used].toSorted()).toEqual([...known].toSorted())
  })
})
