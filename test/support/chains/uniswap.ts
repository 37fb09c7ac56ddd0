/** Uniswap's own contracts on a test chain, and pools with what a test puts in. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type Abi, type Address, encodeDeployData, encodeFunctionData, parseAbi } from 'viem'
import swapToPay from '../../../demo/contracts/ERC20SwapToPay.json' with { type: 'json' }
import { type ContractCall, encodeApprove } from '../../../demo/network/demo-contracts.ts'
import type { Rpc } from '../../../demo/network/rpc.ts'
import type { ChainConfig, PaymentContractConfig, SwapV2Config, SwapV3Config } from '../../../src/chains/chains-file.ts'
import type { Hex } from '../../../src/domain/hex.ts'
import { canonical, type EvmAddress } from '../routing.ts'
import type { TestChain } from './chain.ts'

const require = createRequire(import.meta.url)
const folderOf = (name: string) => dirname(require.resolve(`${name}/package.json`))

/** The parts of a chain that exchanges need: a test chain's, or another's. */
interface ExchangeHost extends Pick<TestChain, 'deployer' | 'fund'> {
  readonly client: { readonly rpc: Pick<Rpc, 'call'> }
  readonly contracts: Pick<TestChain['contracts'], 'erc20FeeProxy'>
  send(from: Address, call: ContractCall | { data: Hex }, options?: { gas?: bigint }): Promise<{ transactionHash: Hex }>
}

interface Artifact {
  readonly abi: Abi
  readonly bytecode: Hex
}

function readArtifact(packageName: string, path: string): Artifact {
  const json = JSON.parse(readFileSync(join(folderOf(packageName), path), 'utf8')) as { abi: Abi; bytecode: string }
  return { abi: json.abi, bytecode: `0x${json.bytecode.replace(/^0x/, '')}` }
}

/** Deploys a contract. @returns its address */
async function deploy(chain: ExchangeHost, artifact: Artifact, args: readonly unknown[] = []): Promise<EvmAddress> {
  const data = encodeDeployData({ ...artifact, args })
  const { transactionHash } = await chain.send(chain.deployer, { data }, { gas: 15_000_000n })
  const receipt = await chain.client.rpc.call<{ contractAddress: Hex }>('eth_getTransactionReceipt', [transactionHash])
  return canonical(receipt.contractAddress)
}

const ROUTER_ABI = parseAbi([
  'function swapExactTokensForTokens(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline)',
  'function addLiquidity(address tokenA, address tokenB, uint256 amountADesired, uint256 amountBDesired, uint256 amountAMin, uint256 amountBMin, address to, uint256 deadline)',
])

const FOREVER = 2n ** 40n

async function fundTrade(chain: ExchangeHost, router: Hex, amount: bigint, from: { address: Hex }): Promise<void> {
  await chain.fund(from, chain.deployer, amount)
  await chain.send(chain.deployer, encodeApprove(from.address, router, 0n))
  await chain.send(chain.deployer, encodeApprove(from.address, router, amount))
}

/** A Uniswap v2. */
export interface UniswapV2 {
  readonly factory: EvmAddress
  readonly router: EvmAddress
  /** Adds both to their pool, and creates the pool the first time. */
  addLiquidity(a: { address: Hex }, amountA: bigint, b: { address: Hex }, amountB: bigint): Promise<void>
  /** Another trader's swap of an exact amount of one token for another. */
  trade(amount: bigint, from: { address: Hex }, to: { address: Hex }): Promise<void>
}

export async function deployUniswapV2(chain: ExchangeHost): Promise<UniswapV2> {
  const factory = await deploy(chain, readArtifact('@uniswap/v2-core', 'build/UniswapV2Factory.json'), [chain.deployer])
  // No test swaps the native coin, so there is nothing that wraps it.
  const router = await deploy(chain, readArtifact('@uniswap/v2-periphery', 'build/UniswapV2Router02.json'), [
    factory,
    chain.deployer,
  ])
  return {
    factory,
    router,
    async addLiquidity(a, amountA, b, amountB) {
      for (const [token, amount] of [
        [a, amountA],
        [b, amountB],
      ] as const) {
        await chain.fund(token, chain.deployer, amount)
        await chain.send(chain.deployer, encodeApprove(token.address, router, 0n))
        await chain.send(chain.deployer, encodeApprove(token.address, router, amount))
      }
      const args = [a.address, b.address, amountA, amountB, 0n, 0n, chain.deployer, FOREVER] as const
      const data = encodeFunctionData({ abi: ROUTER_ABI, functionName: 'addLiquidity', args })
      await chain.send(chain.deployer, { to: router, data }, { gas: 8_000_000n })
    },
    async trade(amount, from, to) {
      await fundTrade(chain, router, amount, from)
      const args = [amount, 0n, [from.address, to.address], chain.deployer, FOREVER] as const
      const data = encodeFunctionData({ abi: ROUTER_ABI, functionName: 'swapExactTokensForTokens', args })
      await chain.send(chain.deployer, { to: router, data }, { gas: 1_000_000n })
    },
  }
}

/** Its entry in a chains file. */
export function uniswapV2Config({ router, factory }: UniswapV2, through: readonly string[] = []): SwapV2Config {
  const pairCodeHash = '0x96e8ac4277198ff8b6f785478aa9a39f403cb768dd02cbee326c3e7da348845f'
  return { router, factory, pairCodeHash, feeBps: 30, through }
}

const SWAP_TO_PAY_ABI = parseAbi([
  'function approvePaymentProxyToSpend(address erc20, address paymentProxy)',
  'function approveRouterToSpend(address erc20)',
  'function setRouter(address router)',
  'function updateRequestSwapFees(uint256 fees)',
])

/** Request's contract that swaps and pays. */
export interface SwapToPay {
  readonly address: EvmAddress
  /** Its entry in a chains file. */
  readonly config: PaymentContractConfig
  /** Lets the chain's fee proxy spend the token. */
  approveProxy(token: { address: Hex }): Promise<void>
  approveRouter(token: { address: Hex }): Promise<void>
  /** Approves proxy and router for each token. */
  approveAll(tokens: readonly { address: Hex }[]): Promise<void>
  /** In thousandths. */
  setFee(perMille: bigint): Promise<void>
  /** Makes a call as its owner, given as text: `approveRouterToSpend(0x…)`. */
  callAsOwner(text: string): Promise<void>
}

export async function deploySwapToPay(chain: ExchangeHost, router: EvmAddress): Promise<SwapToPay> {
  const artifact = swapToPay as unknown as Artifact
  const address = await deploy(chain, artifact, [router, chain.deployer])
  const call = (data: Hex) => chain.send(chain.deployer, { to: address, data })
  const approveProxy: SwapToPay['approveProxy'] = async (token) => {
    const args = [token.address, chain.contracts.erc20FeeProxy] as const
    await call(encodeFunctionData({ abi: SWAP_TO_PAY_ABI, functionName: 'approvePaymentProxyToSpend', args }))
  }
  const approveRouter: SwapToPay['approveRouter'] = async (token) => {
    await call(
      encodeFunctionData({ abi: SWAP_TO_PAY_ABI, functionName: 'approveRouterToSpend', args: [token.address] }),
    )
  }
  return {
    address,
    config: { kind: 'ERC20_SWAP_TO_PAY', version: '0.4.0', address, fromBlock: 0 },
    approveProxy,
    approveRouter,
    async approveAll(tokens) {
      for (const token of tokens) {
        await approveProxy(token)
        await approveRouter(token)
      }
    },
    async callAsOwner(text) {
      const [, functionName, list = ''] = /^(\w+)\((.*)\)$/.exec(text) ?? []
      const args = list.split(', ') as [Hex]
      await call(encodeFunctionData({ abi: SWAP_TO_PAY_ABI, functionName: functionName as 'setRouter', args }))
    },
    async setFee(perMille) {
      await call(encodeFunctionData({ abi: SWAP_TO_PAY_ABI, functionName: 'updateRequestSwapFees', args: [perMille] }))
    },
  }
}

const POSITIONS_ABI = parseAbi([
  'function createAndInitializePoolIfNecessary(address token0, address token1, uint24 fee, uint160 sqrtPriceX96) payable',
  'function mint((address token0, address token1, uint24 fee, int24 tickLower, int24 tickUpper, uint256 amount0Desired, uint256 amount1Desired, uint256 amount0Min, uint256 amount1Min, address recipient, uint256 deadline) params) payable',
])

/** Ticks between two prices at which liquidity may begin, by fee tier. */
const TICK_SPACINGS: Readonly<Record<number, number>> = { 100: 1, 500: 10, 3000: 60, 10000: 200 }
const HIGHEST_TICK = 887_272

/** A Uniswap v3. */
export interface UniswapV3 {
  readonly factory: EvmAddress
  readonly quoter: EvmAddress
  /** SwapRouter02. */
  readonly router: EvmAddress
  /**
   * Adds both to the pool of a fee tier, over all prices or, with `ticks`, over that many spacings on each side of the price. The first call
   * creates the pool, at the price that the amounts imply.
   */
  addLiquidity(
    fee: number,
    a: { address: Hex; amount: bigint },
    b: { address: Hex; amount: bigint },
    ticks?: number,
  ): Promise<void>
  /** Another trader's swap in the pool of a fee tier. */
  trade(fee: number, amount: bigint, from: { address: Hex }, to: { address: Hex }): Promise<void>
}

const ROUTER_V3_ABI = parseAbi([
  'function exactInputSingle((address tokenIn, address tokenOut, uint24 fee, address recipient, uint256 amountIn, uint256 amountOutMinimum, uint160 sqrtPriceLimitX96) params) payable',
])

export async function deployUniswapV3(chain: ExchangeHost): Promise<UniswapV3> {
  const periphery = (path: string) => readArtifact('@uniswap/v3-periphery', `artifacts/contracts/${path}`)
  const noWrapper = chain.deployer
  const factory = await deploy(
    chain,
    readArtifact('@uniswap/v3-core', 'artifacts/contracts/UniswapV3Factory.sol/UniswapV3Factory.json'),
  )
  const enableTier = parseAbi(['function enableFeeAmount(uint24 fee, int24 tickSpacing)'])
  await chain.send(chain.deployer, {
    to: factory,
    data: encodeFunctionData({ abi: enableTier, args: [100, 1] }),
  })
  const quoter = await deploy(chain, periphery('lens/QuoterV2.sol/QuoterV2.json'), [factory, noWrapper])
  const positions = await deploy(chain, periphery('NonfungiblePositionManager.sol/NonfungiblePositionManager.json'), [
    factory,
    noWrapper,
    noWrapper,
  ])
  const router = await deploy(
    chain,
    readArtifact('@uniswap/swap-router-contracts', 'artifacts/contracts/SwapRouter02.sol/SwapRouter02.json'),
    [noWrapper, factory, positions, noWrapper],
  )
  return {
    factory,
    quoter,
    router,
    async addLiquidity(fee, a, b, ticks) {
      const [first, second] = a.address.toLowerCase() < b.address.toLowerCase() ? [a, b] : [b, a]
      for (const { address, amount } of [first, second]) {
        await chain.fund({ address }, chain.deployer, amount)
        await chain.send(chain.deployer, encodeApprove(address, positions, 0n))
        await chain.send(chain.deployer, encodeApprove(address, positions, amount))
      }
      const price = sqrt((second.amount << 192n) / first.amount)
      const args = [first.address, second.address, fee, price] as const
      const create = encodeFunctionData({
        abi: POSITIONS_ABI,
        functionName: 'createAndInitializePoolIfNecessary',
        args,
      })
      await chain.send(chain.deployer, { to: positions, data: create }, { gas: 8_000_000n })
      const spacing = TICK_SPACINGS[fee] ?? 1
      const middle = Math.floor(Math.log(Number(second.amount) / Number(first.amount)) / Math.log(1.0001) / spacing)
      const most = Math.floor(HIGHEST_TICK / spacing)
      const terms = {
        token0: first.address,
        token1: second.address,
        fee,
        tickLower: (ticks === undefined ? -most : middle - ticks) * spacing,
        tickUpper: (ticks === undefined ? most : middle + ticks) * spacing,
        amount0Desired: first.amount,
        amount1Desired: second.amount,
        amount0Min: 0n,
        amount1Min: 0n,
        recipient: chain.deployer,
        deadline: FOREVER,
      }
      const mint = encodeFunctionData({ abi: POSITIONS_ABI, functionName: 'mint', args: [terms] })
      await chain.send(chain.deployer, { to: positions, data: mint }, { gas: 8_000_000n })
    },
    async trade(fee, amount, from, to) {
      await fundTrade(chain, router, amount, from)
      const params = {
        tokenIn: from.address,
        tokenOut: to.address,
        fee,
        recipient: chain.deployer,
        amountIn: amount,
        amountOutMinimum: 0n,
        sqrtPriceLimitX96: 0n,
      }
      const data = encodeFunctionData({ abi: ROUTER_V3_ABI, args: [params] })
      await chain.send(chain.deployer, { to: router, data }, { gas: 1_000_000n })
    },
  }
}

/** Its entry in a chains file. */
export function uniswapV3Config({ factory, quoter, router }: UniswapV3): SwapV3Config {
  const poolCodeHash = '0xe34f199b19b2b4f47f68442619d555527d244f78a3297ea89325f843f87b8b54'
  return { factory, quoter, router, poolCodeHash, fees: [100, 500, 3000, 10000] }
}

/** Both exchanges, and Request's contract that swaps on the first and pays. */
export interface Exchanges {
  readonly v2: UniswapV2
  readonly v3: UniswapV3
  readonly swapToPay: SwapToPay
}

export async function deployExchanges(chain: ExchangeHost): Promise<Exchanges> {
  const v2 = await deployUniswapV2(chain)
  const v3 = await deployUniswapV3(chain)
  return { v2, v3, swapToPay: await deploySwapToPay(chain, v2.router) }
}

/** Adds the exchanges to a chain's configuration. */
export function withExchanges(plain: ChainConfig, { v2, v3, swapToPay }: Exchanges, through: readonly string[] = []) {
  return {
    ...plain,
    contracts: [...plain.contracts, swapToPay.config],
    swapV2: uniswapV2Config(v2, through),
    swapV3: uniswapV3Config(v3),
  }
}

function sqrt(value: bigint): bigint {
  let root = 1n << BigInt((value.toString(2).length + 1) >> 1)
  for (;;) {
    const next = (root + value / root) >> 1n
    if (next >= root) return root
    root = next
  }
}
