/** Uniswap's own contracts on a test chain, and pools with what a test puts in. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type Abi, encodeDeployData, encodeFunctionData, parseAbi } from 'viem'
import swapToPay from '../../src/demo/contracts/ERC20SwapToPay.json' with { type: 'json' }
import { encodeApprove } from '../../src/demo/contracts.ts'
import type { Hex } from '../../src/domain/hex.ts'
import type { TestChain } from './chain.ts'
import { canonical, type EvmAddress } from './routing.ts'

const require = createRequire(import.meta.url)
const folderOf = (name: string) => dirname(require.resolve(`${name}/package.json`))

interface Artifact {
  readonly abi: Abi
  readonly bytecode: Hex
}

function readArtifact(packageName: string, path: string): Artifact {
  const json = JSON.parse(readFileSync(join(folderOf(packageName), path), 'utf8')) as { abi: Abi; bytecode: string }
  return { abi: json.abi, bytecode: `0x${json.bytecode.replace(/^0x/, '')}` }
}

/** Deploys a contract. @returns its address */
export async function deploy(chain: TestChain, artifact: Artifact, args: readonly unknown[] = []): Promise<EvmAddress> {
  const data = encodeDeployData({ ...artifact, args })
  const { transactionHash } = await chain.send(chain.deployer, { data }, { gas: 15_000_000n })
  const receipt = await chain.client.rpc.call<{ contractAddress: Hex }>('eth_getTransactionReceipt', [transactionHash])
  return canonical(receipt.contractAddress)
}

const ROUTER_ABI = parseAbi([
  'function addLiquidity(address tokenA, address tokenB, uint256 amountADesired, uint256 amountBDesired, uint256 amountAMin, uint256 amountBMin, address to, uint256 deadline)',
])

const FOREVER = 2n ** 40n

/** A Uniswap v2. */
export interface UniswapV2 {
  readonly factory: EvmAddress
  readonly router: EvmAddress
  /** Puts both into their pool, which comes to be with the first of it. */
  addLiquidity(a: { address: Hex }, amountA: bigint, b: { address: Hex }, amountB: bigint): Promise<void>
}

export async function deployUniswapV2(chain: TestChain): Promise<UniswapV2> {
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
      const data = encodeFunctionData({ abi: ROUTER_ABI, args })
      await chain.send(chain.deployer, { to: router, data }, { gas: 8_000_000n })
    },
  }
}

const SWAP_TO_PAY_ABI = parseAbi([
  'function approvePaymentProxyToSpend(address erc20, address paymentProxy)',
  'function approveRouterToSpend(address erc20)',
  'function updateRequestSwapFees(uint256 fees)',
])

/** Request's contract that swaps and pays. */
export interface SwapToPay {
  readonly address: EvmAddress
  approveProxy(token: { address: Hex }, proxy: Hex): Promise<void>
  approveRouter(token: { address: Hex }): Promise<void>
  /** In thousandths. */
  setFee(perMille: bigint): Promise<void>
}

export async function deploySwapToPay(chain: TestChain, router: EvmAddress): Promise<SwapToPay> {
  const artifact = swapToPay as unknown as Artifact
  const address = await deploy(chain, artifact, [router, chain.deployer])
  const call = (data: Hex) => chain.send(chain.deployer, { to: address, data })
  return {
    address,
    async approveProxy(token, proxy) {
      await call(
        encodeFunctionData({
          abi: SWAP_TO_PAY_ABI,
          functionName: 'approvePaymentProxyToSpend',
          args: [token.address, proxy],
        }),
      )
    },
    async approveRouter(token) {
      await call(
        encodeFunctionData({ abi: SWAP_TO_PAY_ABI, functionName: 'approveRouterToSpend', args: [token.address] }),
      )
    },
    async setFee(perMille) {
      await call(encodeFunctionData({ abi: SWAP_TO_PAY_ABI, functionName: 'updateRequestSwapFees', args: [perMille] }))
    },
  }
}
