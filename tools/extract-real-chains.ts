/**
 * Writes the chains file of the real networks: Request's contracts with their versions and blocks of creation from the package that publishes
 * them, chains, coins and USDC from viem, and from real-chains.json the facts that neither publishes.
 *
 *   tools/with-node node tools/extract-real-chains.ts           writes chains/mainnets.json
 *   tools/with-node node tools/extract-real-chains.ts --check   ends with 1 where the committed file differs
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runInNewContext } from 'node:vm'
import { type Address, type Chain, getAddress } from 'viem'
import { arbitrum, base, bsc, mainnet, optimism, polygon, sepolia } from 'viem/chains'
import { usdc } from 'viem/tokens'
import type { PaymentContractKind } from '../src/chains/chains-file.ts'
import table from './real-chains.json' with { type: 'json' }

const OUTPUT = fileURLToPath(new URL('../chains/mainnets.json', import.meta.url))

/** For lists; an object is on one line, however long. */
const LINE_LENGTH = 120

const VIEM_CHAINS: Readonly<Record<string, Chain>> = {
  ETHEREUM: mainnet,
  POLYGON: polygon,
  ARBITRUM: arbitrum,
  OPTIMISM: optimism,
  BASE: base,
  BSC: bsc,
  SEPOLIA: sepolia,
}

/** A folder of the package's artifacts, for each kind of contract. */
const PAYMENT_ARTIFACTS: readonly (readonly [kind: PaymentContractKind, artifact: string])[] = [
  ['ERC20_FEE_PROXY', 'ERC20FeeProxy'],
  ['ETHEREUM_FEE_PROXY', 'EthereumFeeProxy'],
  ['ERC20_CONVERSION_PROXY', 'Erc20ConversionProxy'],
  ['ETH_CONVERSION_PROXY', 'EthConversionProxy'],
  ['ERC20_SWAP_TO_PAY', 'ERC20SwapToPay'],
  ['BATCH_PAYMENTS', 'BatchPayments'],
  ['BATCH_PAYMENTS', 'BatchNoConversionPayments'],
  ['BATCH_CONVERSION_PAYMENTS', 'BatchConversionPayments'],
  ['SINGLE_REQUEST_PROXY_FACTORY', 'SingleRequestProxyFactory'],
]

/** Versions below have another interface: routes do not use them, but detection finds their payments. */
const LOWEST_VERSIONS: Partial<Record<PaymentContractKind, string>> = { ERC20_SWAP_TO_PAY: '0.4.0' }

/**
 * Contracts that pay through a proxy with tokens that the payer sent in the same transaction. An escrow pays with tokens of an earlier
 * transaction; the payer of that is unknown. ERC20RecurringPaymentProxy is missing, because this package does not publish it.
 */
const INTERMEDIARY_ARTIFACTS = ['ERC20EscrowToPay']

/** Contracts that swap the tokens of the payer and pay with the result. */
const SWAP_ARTIFACTS = ['Erc20SwapConversion']

interface HandKept {
  readonly address: string
  readonly sources: readonly string[]
}

interface HandKeptToken extends Partial<HandKept> {
  readonly symbol: string
  /** Set when viem publishes address and decimals. */
  readonly viem?: string
  readonly decimals?: number
  readonly feed?: string
  readonly pegUsd?: string
  readonly bridged?: boolean
  readonly approveReset?: boolean
}

interface HandKeptChain {
  readonly name: string
  /** The name in Request's packages. */
  readonly network: string
  readonly finalityDepth: number
  /** Set when viem has none. */
  readonly blockTimeSeconds?: number
  readonly nativeFeed: string
  /** Chainlink's feeds in US dollars, by the symbol that they price. */
  readonly feeds: Readonly<Record<string, (HandKept & { readonly heartbeatSeconds: number }) | undefined>>
  readonly tokens: readonly HandKeptToken[]
  readonly conversion?: { readonly from: readonly string[]; readonly into: readonly string[] }
  readonly swapV2?: {
    readonly factory: string
    readonly pairCodeHash?: string
    readonly feeBps?: number
    readonly through: readonly string[]
  }
  readonly swapV3?: { readonly factory: string; readonly quoter: string; readonly router: string }
  readonly executors?: readonly HandKept[]
  readonly lifi?: {
    readonly diamond: string
    readonly feeForwarder: string
    readonly feeCollector: string
    readonly receiverAcrossV4: string
    readonly executor: string
    readonly spokePool: string
  }
}

interface Deployment {
  readonly version: string
  readonly address: Address
  readonly block: number
}

const require = createRequire(import.meta.url)
const requestPackage = dirname(require.resolve('@requestnetwork/smart-contracts/package.json'))

/** Its modules need ethers and hardhat's tools only for calls to chains; the published data are constants. */
function evaluate(path: string): Record<string, unknown> {
  const exports: Record<string, unknown> = {}
  const ContractArtifact = class {
    readonly info: unknown
    constructor(info: unknown) {
      this.info = info
    }
  }
  runInNewContext(readFileSync(join(requestPackage, 'dist', path), 'utf8'), {
    exports,
    require: () => ({ ContractArtifact }),
  })
  return exports
}

type ArtifactInfo = Readonly<
  Record<
    string,
    {
      readonly deployment: Readonly<
        Record<string, { readonly address: string; readonly creationBlockNumber: number } | undefined>
      >
    }
  >
>

/**
 * All versions of a contract that were deployed on a network, oldest first. Several versions at one address are listed once: the newest
 * version, from the first block.
 */
function deploymentsOf(artifact: string, network: string): Deployment[] {
  const [exported] = Object.values(evaluate(`src/lib/artifacts/${artifact}/index.js`)).filter(
    (value): value is { info: ArtifactInfo } => typeof value === 'object' && value !== null && 'info' in value,
  )
  if (exported === undefined) throw new Error(`${artifact} publishes no deployments`)
  const byAddress = new Map<Address, Deployment>()
  for (const [version, { deployment }] of Object.entries(exported.info)) {
    const found = deployment[network]
    if (found === undefined) continue
    const address = getAddress(found.address)
    const before = byAddress.get(address)
    byAddress.set(address, {
      version: before === undefined || compareVersions(version, before.version) > 0 ? version : before.version,
      address,
      block: Math.min(found.creationBlockNumber, before?.block ?? Number.POSITIVE_INFINITY),
    })
  }
  return [...byAddress.values()].toSorted((a, b) => compareVersions(a.version, b.version))
}

function compareVersions(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true })
}

function isPaidThrough(kind: PaymentContractKind, { version }: Deployment): boolean {
  return compareVersions(version, LOWEST_VERSIONS[kind] ?? '0') >= 0
}

function contractsOf(network: string) {
  return PAYMENT_ARTIFACTS.flatMap(([kind, artifact]) =>
    deploymentsOf(artifact, network)
      .filter((deployment) => isPaidThrough(kind, deployment))
      .map(({ version, address, block }) => ({ kind, version, address, fromBlock: block })),
  )
}

function intermediariesOf(network: string): Address[] {
  return addressesOf(INTERMEDIARY_ARTIFACTS.flatMap((artifact) => deploymentsOf(artifact, network)))
}

function swapIntermediariesOf(network: string): Address[] {
  const outdated = PAYMENT_ARTIFACTS.flatMap(([kind, artifact]) =>
    deploymentsOf(artifact, network).filter((deployment) => !isPaidThrough(kind, deployment)),
  )
  return addressesOf([...outdated, ...SWAP_ARTIFACTS.flatMap((artifact) => deploymentsOf(artifact, network))])
}

function addressesOf(deployments: readonly Deployment[]): Address[] {
  return deployments.map(({ address }) => address)
}

/** The router that Request's swap contracts use on a network. @throws Error when none is published */
function swapRouterOf(network: string): Address {
  const { uniswapV2RouterAddresses } = evaluate('scripts/utils.js') as {
    uniswapV2RouterAddresses: Record<string, string>
  }
  const router = uniswapV2RouterAddresses[network]
  if (router === undefined || BigInt(router) === 0n) throw new Error(`no router is published for ${network}`)
  return getAddress(router)
}

function handKept(address: string): Address {
  if (getAddress(address) !== address) throw new Error(`real-chains.json: ${address} has a wrong checksum`)
  return address
}

/** The maximum age of a price. A due round is mined up to a minute after the heartbeat, with long heartbeats even later. */
function longestAge(heartbeatSeconds: number): number {
  return heartbeatSeconds + Math.max(60, Math.ceil(heartbeatSeconds / 10))
}

function feedOf({ name, feeds }: HandKeptChain, feed: string) {
  const found = feeds[feed]
  if (found === undefined) throw new Error(`real-chains.json: ${name} has no feed of ${feed}`)
  return found
}

function priceOf(chain: HandKeptChain, feed: string | undefined) {
  if (feed === undefined) return {}
  const { address, heartbeatSeconds } = feedOf(chain, feed)
  return { usdFeed: handKept(address), heartbeatSeconds: longestAge(heartbeatSeconds) }
}

function tokenOf(chain: HandKeptChain, viemChain: Chain, token: HandKeptToken) {
  const { symbol, viem, feed, pegUsd, bridged, approveReset } = token
  const published = viem === undefined ? undefined : usdc.addresses[viemChain.id as keyof typeof usdc.addresses]
  const address = published === undefined ? handKept(token.address ?? '') : getAddress(published)
  return {
    symbol,
    address,
    decimals: published === undefined ? token.decimals : usdc.decimals,
    ...priceOf(chain, feed),
    ...(pegUsd !== undefined && { pegUsd }),
    ...(bridged === true && { bridged }),
    ...(approveReset === true && { approveReset }),
  }
}

/** Conversion paths: directly from US dollars, and through US dollars from other currencies. The provider itself adds the margin for late rounds. */
function conversionOf(chain: HandKeptChain) {
  const path = deploymentsOf('ChainlinkConversionPath', chain.network).at(-1)
  if (path === undefined) throw new Error(`no ChainlinkConversionPath is published for ${chain.network}`)
  const feedFor = (symbol: string) =>
    feedOf(chain, chain.tokens.find((token) => token.symbol === symbol)?.feed ?? symbol)
  const { from: currencies, into } = chain.conversion ?? { from: [], into: [] }
  const paths = currencies.flatMap((from) =>
    into.map((token) => {
      const feeds = [feedFor(token), ...(from === 'USD' ? [] : [feedOf(chain, from)])]
      return {
        from,
        token,
        ...(from !== 'USD' && { via: ['USD'] }),
        heartbeatSeconds: Math.max(...feeds.map(({ heartbeatSeconds }) => heartbeatSeconds)),
      }
    }),
  )
  return { path: path.address, paths }
}

function chainOf(chain: HandKeptChain) {
  const { name, network, finalityDepth, nativeFeed, swapV2, swapV3, executors, lifi } = chain
  const viemChain = VIEM_CHAINS[name]
  const multicall = viemChain?.contracts?.multicall3
  if (viemChain === undefined || multicall === undefined)
    throw new Error(`viem knows no ${name}, or no Multicall3 on it`)
  const { symbol, decimals } = viemChain.nativeCurrency
  const swapIntermediaries = swapIntermediariesOf(network)
  const blockTimeSeconds = chain.blockTimeSeconds ?? (viemChain.blockTime ?? Number.NaN) / 1_000
  return {
    name,
    chainId: viemChain.id,
    ...explorerOf(viemChain),
    optional: true,
    rpcUrls: [`\${${name}_RPC_URL}`, `\${${name}_RPC_URL_2}`],
    multicall: getAddress(multicall.address),
    native: { symbol, decimals, ...priceOf(chain, nativeFeed) },
    tokens: chain.tokens.map((token) => tokenOf(chain, viemChain, token)),
    contracts: contractsOf(network),
    intermediaries: intermediariesOf(network),
    ...(swapIntermediaries.length > 0 && { swapIntermediaries }),
    ...(executors && { executors: executors.map(({ address }) => handKept(address)) }),
    ...(lifi && {
      lifi: {
        diamond: handKept(lifi.diamond),
        feeContracts: [handKept(lifi.feeForwarder), handKept(lifi.feeCollector)],
        receiverAcrossV4: handKept(lifi.receiverAcrossV4),
        executor: handKept(lifi.executor),
        spokePool: handKept(lifi.spokePool),
      },
    }),
    conversion: conversionOf(chain),
    ...(swapV2 && {
      swapV2: {
        router: swapRouterOf(network),
        factory: handKept(swapV2.factory),
        ...(swapV2.pairCodeHash !== undefined && { pairCodeHash: swapV2.pairCodeHash }),
        ...(swapV2.feeBps !== undefined && { feeBps: swapV2.feeBps }),
        through: swapV2.through,
      },
    }),
    ...(swapV3 && {
      swapV3: {
        factory: handKept(swapV3.factory),
        quoter: handKept(swapV3.quoter),
        router: handKept(swapV3.router),
      },
    }),
    finality: { useFinalizedTag: true, depth: finalityDepth },
    ...l1FeeOf(name, viemChain),
    blockTimeSeconds,
  }
}

/** The pages of Etherscan's explorers, which viem names for each of these chains. */
function explorerOf({ blockExplorers }: Chain) {
  const url = blockExplorers?.default.url.replace(/\/+$/, '')
  if (url === undefined) return {}
  return { explorer: { transaction: `${url}/tx/{hash}`, address: `${url}/address/{address}` } }
}

/** Chains of the OP stack are those that viem knows a gas price oracle of. */
function l1FeeOf(name: string, { contracts }: Chain): { l1Fee?: string } {
  if (contracts !== undefined && 'gasPriceOracle' in contracts) return { l1Fee: 'OP_STACK' }
  return name === 'ARBITRUM' ? { l1Fee: 'ARBITRUM' } : {}
}

/** JSON with one line an object, except objects that contain others. */
function format(value: unknown, indent = ''): string {
  const isList = Array.isArray(value)
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
  const parts = entries.map(([key, each]) => `${isList ? '' : `"${key}": `}${format(each, `${indent}  `)}`)
  if (entries.length === 0) return JSON.stringify(value)
  const line = isList ? `[${parts.join(', ')}]` : `{ ${parts.join(', ')} }`
  const isFlat = !line.includes('\n') && !entries.some(([, each]) => isObject(each))
  if (isFlat && (!isList || line.length <= LINE_LENGTH)) return line
  const open = isList ? '[' : '{'
  const rest = parts.map((part) => `\n${indent}  ${part}`).join(',')
  return `${open}${rest}\n${indent}${isList ? ']' : '}'}`
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const chains: readonly HandKeptChain[] = table.chains
const text = `${format({ $schema: '../src/chains/chains-file.schema.json', chains: chains.map(chainOf) })}\n`
if (!process.argv.includes('--check')) writeFileSync(OUTPUT, text)
else if (readFileSync(OUTPUT, 'utf8') !== text) {
  process.stderr.write(
    'chains/mainnets.json differs from its sources: run the tool without --check and commit the result\n',
  )
  process.exitCode = 1
}
