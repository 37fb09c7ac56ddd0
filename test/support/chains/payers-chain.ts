/**
 * Request's contracts, tokens, feeds and exchanges on any node, and wallets that sign by themselves: for tests that take routes as a payer's
 * own wallet would.
 */

import { type Abi, type Address, encodeFunctionData, getAddress, type Hex, keccak256, toBytes } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import circleLikeToken from '../../../demo/contracts/CircleLikeToken.json' with { type: 'json' }
import {
  type ContractCall,
  encodeAggregators,
  encodeApprove,
  encodeBalanceOf,
  encodeCreation,
  encodeMint,
} from '../../../demo/network/demo-contracts.ts'
import { USD_HASH } from '../../../demo/network/deployment.ts'
import { type Rpc, toQuantity } from '../../../demo/network/rpc.ts'
import type { ChainConfig } from '../../../src/chains/chains-file.ts'
import { currencyHash } from '../../../src/contracts/currency-hash.ts'
import type { PreparedTransaction } from '../../../src/domain/route.ts'
import { canonical } from '../routing.ts'
import { encodeAllowance } from './contract-calls.ts'
import type { TestNode } from './nodes.ts'
import { deployExchanges, type Exchanges, withExchanges } from './uniswap.ts'

const USD = 10n ** 8n
const COIN = 10n ** 18n
const FEED_DECIMALS = 8
const DEPLOYMENT_GAS = 6_000_000n

type Behaviour = 'PLAIN' | 'TETHER' | 'CIRCLE'

export interface PayersToken {
  readonly symbol: string
  readonly address: Address
  readonly decimals: number
  readonly behaviour: Behaviour
  readonly feed: Address
}

export interface Mined {
  readonly hash: Hex
  readonly succeeded: boolean
  readonly gasUsed: bigint
  /** Wei. */
  readonly gasCost: bigint
}

export interface PayersChain {
  readonly node: TestNode
  readonly rpc: Rpc
  readonly config: ChainConfig
  readonly tokens: ReadonlyMap<string, PayersToken>
  readonly exchanges: Exchanges
  readonly feeProxy: Address
  token(symbol: string): PayersToken
  /** A wallet of its own with a coin or more. */
  newWallet(wei?: bigint): Promise<PrivateKeyAccount>
  fund(token: { address: Address }, to: string, amount: bigint): Promise<void>
  approve(owner: PrivateKeyAccount, token: PayersToken, spender: string, amount: bigint): Promise<void>
  /** Base units; without a token, of the coin. */
  holding(owner: string, token?: { address: Address }): Promise<bigint>
  allowance(token: PayersToken, owner: string, spender: string): Promise<bigint>
  /** Signs and sends a prepared transaction. Nonce and fees are those that the node suggests, as wallets choose them. */
  send(wallet: PrivateKeyAccount, transaction: PreparedTransaction): Promise<Mined>
  /** Sends from the rich account. */
  sendAsRich(call: ContractCall): Promise<void>
}

const BASE_TOKENS: readonly Pick<PayersToken, 'symbol' | 'decimals' | 'behaviour'>[] = [
  { symbol: 'USDC', decimals: 6, behaviour: 'CIRCLE' },
  { symbol: 'USDT', decimals: 6, behaviour: 'TETHER' },
  { symbol: 'DAI', decimals: 18, behaviour: 'PLAIN' },
]

/** Tokens whose v2 pairs have had no trade. */
const freshTokens = (count: number): typeof BASE_TOKENS =>
  Array.from({ length: count }, (_, i) => ({ symbol: `FRESH${i}`, decimals: 18, behaviour: 'PLAIN' as const }))

const V3_FEE = 500

/** Deploys all of it. DAI and the fresh tokens are swapped on the v2, USDT on the v3, all for USDC, near one to one. */
export async function deployForPayers(node: TestNode, { fresh = 0 }: { fresh?: number } = {}): Promise<PayersChain> {
  const { rpc, rich } = node
  const sendFrom = async (from: Hex, call: ContractCall | { data: Hex }, gas = 500_000n) => {
    const value = 'value' in call && call.value !== undefined ? { value: toQuantity(call.value) } : {}
    const hash = await rpc.call<Hex>('eth_sendTransaction', [{ from, ...call, ...value, gas: toQuantity(gas) }])
    const mined = await receiptOf(rpc, hash)
    if (BigInt(mined.status) !== 1n) throw new Error(`transaction ${hash} was reverted`)
    return mined
  }
  const create = async (data: Hex) => {
    const { contractAddress } = await sendFrom(rich, { data }, DEPLOYMENT_GAS)
    return getAddress(contractAddress ?? '')
  }
  const deploy = (name: string, args: readonly unknown[] = []) => create(encodeCreation(name, args))
  const addFeed = (symbol: string, price: bigint) =>
    deploy('SettableFeed', [`${symbol} / USD`, FEED_DECIMALS, price, BigInt(Math.floor(Date.now() / 1_000))])
  const fund: PayersChain['fund'] = async (token, to, amount) => {
    await sendFrom(rich, encodeMint(token.address, to as Hex, amount))
  }

  const ethHash = currencyHash('eth', 'ETH') as string as Hex
  const multicall = await deploy('Multicall3')
  const erc20FeeProxy = await deploy('ERC20FeeProxy')
  const ethereumFeeProxy = await deploy('EthereumFeeProxy')
  const path = await deploy('ChainlinkConversionPath', [ethHash, rich])
  const erc20ConversionProxy = await deploy('Erc20ConversionProxy', [erc20FeeProxy, path, rich])
  const ethConversionProxy = await deploy('EthConversionProxy', [ethereumFeeProxy, path, ethHash, rich])
  const tokens = new Map<string, PayersToken>()
  for (const terms of [...BASE_TOKENS, ...freshTokens(fresh)]) {
    const address = await deployToken(create, (call) => sendFrom(rich, call), rich, terms)
    tokens.set(terms.symbol, { ...terms, address, feed: await addFeed(terms.symbol, USD) })
  }
  const coinFeed = await addFeed('ETH', 3_000n * USD)
  const aggregators = [...tokens.values()].map(({ address, feed }) => ({ input: address, output: USD_HASH, feed }))
  await sendFrom(
    rich,
    encodeAggregators(path, [{ input: ethHash, output: USD_HASH, feed: coinFeed }, ...aggregators]),
    3_000_000n,
  )

  const plain = configOf(
    node,
    { multicall, erc20FeeProxy, ethereumFeeProxy, erc20ConversionProxy, ethConversionProxy },
    [path, coinFeed, [...tokens.values()]],
  )
  const exchanges = await deployExchanges({
    deployer: getAddress(rich),
    client: { rpc },
    contracts: { erc20FeeProxy },
    fund,
    async send(_from, call, options) {
      return { transactionHash: (await sendFrom(rich, call, options?.gas)).transactionHash }
    },
  })
  const token = (symbol: string) => {
    const found = tokens.get(symbol)
    if (found === undefined) throw new Error(`there is no ${symbol}`)
    return found
  }
  await addPools(exchanges, token, fresh)
  return {
    ...actsOn(node, sendFrom),
    node,
    rpc,
    config: withExchanges(plain, exchanges),
    tokens,
    exchanges,
    feeProxy: erc20FeeProxy,
    token,
    fund,
  }
}

async function deployToken(
  create: (code: Hex) => Promise<Address>,
  send: (call: ContractCall) => Promise<unknown>,
  minter: Hex,
  { symbol, decimals, behaviour }: Pick<PayersToken, 'symbol' | 'decimals' | 'behaviour'>,
): Promise<Address> {
  const deploy = (name: string, args: readonly unknown[] = []) => create(encodeCreation(name, args))
  if (behaviour === 'PLAIN') return deploy('DemoToken', [symbol, symbol, decimals])
  if (behaviour === 'TETHER') return deploy('TetherLikeToken', [symbol, symbol, decimals])
  const abi = circleLikeToken.abi as Abi
  const address = await create(minimalProxyTo(await deploy('CircleLikeToken')))
  await send({
    to: address,
    data: encodeFunctionData({ abi, functionName: 'initialize', args: [symbol, symbol, decimals, minter] }),
  })
  return address
}

/** Creation code of a proxy that runs the code of another contract. @see https://eips.ethereum.org/EIPS/eip-1167 */
function minimalProxyTo(implementation: Address): Hex {
  return `0x3d602d80600a3d3981f3363d3d373d3d3d363d73${implementation.slice(2)}5af43d82803e903d91602b57fd5bf3`
}

function configOf(
  { rpc, chainId }: TestNode,
  contracts: Record<
    'multicall' | 'erc20FeeProxy' | 'ethereumFeeProxy' | 'erc20ConversionProxy' | 'ethConversionProxy',
    Address
  >,
  [path, coinFeed, tokens]: readonly [Address, Address, readonly PayersToken[]],
): ChainConfig {
  const contract = (kind: ChainConfig['contracts'][number]['kind'], address: string) =>
    ({ kind, version: '0.2.0', address: canonical(address), fromBlock: 0 }) as const
  const heartbeatSeconds = 86_400
  return {
    name: 'ETHEREUM',
    chainId,
    rpcUrls: [rpc.url],
    multicall: canonical(contracts.multicall),
    native: { symbol: 'ETH', decimals: 18, usdFeed: canonical(coinFeed), heartbeatSeconds },
    tokens: tokens.map(({ symbol, address, decimals, feed, behaviour }) => ({
      symbol,
      address: canonical(address),
      decimals,
      usdFeed: canonical(feed),
      heartbeatSeconds,
      ...(behaviour === 'TETHER' ? { approveReset: true } : {}),
    })),
    contracts: [
      contract('ERC20_FEE_PROXY', contracts.erc20FeeProxy),
      contract('ETHEREUM_FEE_PROXY', contracts.ethereumFeeProxy),
      contract('ERC20_CONVERSION_PROXY', contracts.erc20ConversionProxy),
      contract('ETH_CONVERSION_PROXY', contracts.ethConversionProxy),
    ],
    conversion: {
      path: canonical(path),
      paths: ['USDC', 'USDT', 'DAI', 'ETH'].map((symbol) => ({
        from: 'USD',
        token: symbol,
        via: [],
        heartbeatSeconds,
      })),
    },
    finality: { useFinalizedTag: false, depth: 5 },
    blockTimeSeconds: 12,
  }
}

async function addPools({ v2, v3, swapToPay }: Exchanges, token: PayersChain['token'], fresh: number): Promise<void> {
  const unit = (symbol: string) => 10n ** BigInt(token(symbol).decimals)
  const [usdc, usdt] = [token('USDC'), token('USDT')]
  const first = freshTokens(fresh).map(({ symbol }) => token(symbol))
  await v3.addLiquidity(
    V3_FEE,
    { ...usdt, amount: 5_000_000n * unit('USDT') },
    { ...usdc, amount: 4_950_000n * unit('USDC') },
  )
  for (const other of [token('DAI'), ...first]) {
    await v2.addLiquidity(other, 2_000_000n * COIN, usdc, 2_010_000n * unit('USDC'))
  }
  await swapToPay.approveAll([usdc, token('DAI'), ...first])
}

type SendFrom = (from: Hex, call: ContractCall, gas?: bigint) => Promise<unknown>

function actsOn(node: TestNode, sendFrom: SendFrom) {
  const { rpc, rich, chainId } = node
  const read = async ({ to, data }: ContractCall) => BigInt(await rpc.call<Hex>('eth_call', [{ to, data }, 'latest']))

  async function feesOf() {
    const { baseFeePerGas } = await rpc.call<{ baseFeePerGas: Hex }>('eth_getBlockByNumber', ['latest', false])
    const maxPriorityFeePerGas = BigInt(await rpc.call<Hex>('eth_maxPriorityFeePerGas'))
    return { maxPriorityFeePerGas, maxFeePerGas: 2n * BigInt(baseFeePerGas) + 10n ** 11n + maxPriorityFeePerGas }
  }

  const send: PayersChain['send'] = async (wallet, transaction) => {
    // Wallets estimate a gas limit that is left out.
    const gas = transaction.gas ?? (await rpc.call<Hex>('eth_estimateGas', [transaction]))
    const signed = await wallet.signTransaction({
      type: 'eip1559',
      to: transaction.to as Hex,
      data: transaction.data,
      value: BigInt(transaction.value),
      gas: BigInt(gas),
      chainId: Number(transaction.chainId),
      nonce: Number(await rpc.call<Hex>('eth_getTransactionCount', [wallet.address, 'pending'])),
      ...(await feesOf()),
    })
    const hash = await rpc.call<Hex>('eth_sendRawTransaction', [signed])
    const receipt = await receiptOf(rpc, hash)
    const gasUsed = BigInt(receipt.gasUsed)
    const gasCost = gasUsed * BigInt(receipt.effectiveGasPrice)
    return { hash, succeeded: BigInt(receipt.status) === 1n, gasUsed, gasCost }
  }

  return {
    send,
    async sendAsRich(call: ContractCall) {
      await sendFrom(rich, call)
    },
    async newWallet(wei = 10n * COIN) {
      const wallet = privateKeyToAccount(generatePrivateKey())
      await sendFrom(rich, { to: wallet.address, data: '0x', value: wei })
      return wallet
    },
    async approve(owner: PrivateKeyAccount, token: PayersToken, spender: string, amount: bigint) {
      const { to, data } = encodeApprove(token.address, spender as Hex, amount)
      const sent = await send(owner, { from: owner.address, to, data, value: '0x0', chainId: toQuantity(chainId) })
      if (!sent.succeeded) throw new Error('an approval was reverted')
    },
    holding: (owner: string, token?: { address: Address }) =>
      token === undefined
        ? rpc.call<Hex>('eth_getBalance', [owner, 'latest']).then(BigInt)
        : read(encodeBalanceOf(token.address, owner as Hex)),
    allowance: (token: PayersToken, owner: string, spender: string) =>
      read(encodeAllowance(token.address, owner as Hex, spender as Hex)),
  }
}

interface RpcReceipt {
  readonly transactionHash: Hex
  readonly blockNumber: Hex
  readonly status: Hex
  readonly gasUsed: Hex
  readonly effectiveGasPrice: Hex
  readonly contractAddress?: Hex | null
}

const RECEIPT_CHECKS = 400

/** All nodes here mine at once, but geth returns the receipt a moment later, and counts the block as its latest a moment after that. */
export async function receiptOf(rpc: Rpc, hash: Hex): Promise<RpcReceipt> {
  for (let check = 0; check < RECEIPT_CHECKS; check++) {
    const receipt = await rpc.call<RpcReceipt | null>('eth_getTransactionReceipt', [hash]).catch(() => null)
    const latest = receipt === null ? -1n : BigInt(await rpc.call<Hex>('eth_blockNumber'))
    if (receipt !== null && BigInt(receipt.blockNumber) <= latest) return receipt
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`transaction ${hash} was not mined`)
}

/** An address that nobody has used, the same for the same seed. */
export function unusedAddress(seed: string): Hex {
  return getAddress(`0x${keccak256(toBytes(seed)).slice(-40)}`)
}
