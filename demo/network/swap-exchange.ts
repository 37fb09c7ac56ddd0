/** The demo's own exchange with the interface of Uniswap v2, and Request's contract that swaps on it and pays. */
import type { Address, Hex } from 'viem'
import { encodeFunctionData, encodePacked, getCreate2Address, keccak256, parseAbi } from 'viem/utils'
import { type ContractCall, encodeCreation, encodeMint } from './demo-contracts.ts'

/** Two tokens of about the same price, and how many whole units of each their pool holds. */
export interface PoolSpec {
  tokens: readonly [string, string]
  each: bigint
}

export interface DeployedExchange {
  /** Router and factory in one contract. */
  address: Address
  /** keccak256 of the creation code of its pairs. */
  pairCodeHash: Hex
  /** Request's ERC20SwapToPay. */
  swapToPay: Address
}

const ABI = parseAbi([
  'function createPair(address a, address b)',
  'function sync()',
  'function approvePaymentProxyToSpend(address erc20, address paymentProxy)',
  'function approveRouterToSpend(address erc20)',
])

/**
 * Plans the contracts, and the calls that fill the pools and approve tokens.
 *
 * @param add - adds a contract to the deployment
 */
export function planExchange(
  add: (code: Hex) => Address,
  {
    owner,
    erc20FeeProxy,
    tokens,
    pools,
  }: {
    owner: Address
    erc20FeeProxy: Address
    tokens: readonly { symbol: string; address: Address; decimals: number }[]
    pools: readonly PoolSpec[]
  },
): { exchange: DeployedExchange; calls: readonly ContractCall[] } {
  const pairCodeHash = keccak256(encodeCreation('DemoPair'))
  const address = add(encodeCreation('DemoExchange'))
  const swapToPay = add(encodeCreation('ERC20SwapToPay', [address, owner]))
  const exchange = { address, pairCodeHash, swapToPay }
  const poolCalls = pools.flatMap(({ tokens: symbols, each }) => {
    const [a, b] = [named(tokens, symbols[0]), named(tokens, symbols[1])]
    const pair = pairOf(exchange, a.address, b.address)
    return [
      { to: address, data: encodeFunctionData({ abi: ABI, functionName: 'createPair', args: [a.address, b.address] }) },
      ...[a, b].map((token) => encodeMint(token.address, pair, each * 10n ** BigInt(token.decimals))),
      { to: pair, data: encodeFunctionData({ abi: ABI, functionName: 'sync' }) },
    ]
  })
  const approvals = tokens.flatMap((token) => [
    encodeFunctionData({ abi: ABI, functionName: 'approveRouterToSpend', args: [token.address] }),
    encodeFunctionData({ abi: ABI, functionName: 'approvePaymentProxyToSpend', args: [token.address, erc20FeeProxy] }),
  ])
  return { exchange, calls: [...poolCalls, ...approvals.map((data) => ({ to: swapToPay, data }))] }
}

function named<T extends { symbol: string }>(tokens: readonly T[], symbol: string): T {
  const token = tokens.find((candidate) => candidate.symbol === symbol)
  if (!token) throw new RangeError(`this chain has no token ${symbol}`)
  return token
}

function pairOf({ address, pairCodeHash }: DeployedExchange, a: Address, b: Address): Address {
  const sorted = a.toLowerCase() < b.toLowerCase() ? ([a, b] as const) : ([b, a] as const)
  const salt = keccak256(encodePacked(['address', 'address'], sorted))
  return getCreate2Address({ from: address, salt, bytecodeHash: pairCodeHash })
}
