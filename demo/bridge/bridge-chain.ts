import type { Address } from 'viem'
import type { ChainClient } from '../network/chain-client.ts'
import { ZERO_ADDRESS } from '../network/demo-contracts.ts'
import type { Deployed } from '../network/deployment.ts'

/** A chain of the bridge, with the bridge's contracts on it. */
export interface BridgeChain {
  name: string
  chainId: number
  client: ChainClient
  /** Signs quotes, delivers, and claims deposits: an account of the node, whose tokens the executor may pull. */
  relayer: Address
  escrow: Address
  executor: Address
  /** The only contract that the executor calls. */
  feeProxy: Address
  /** wei; the relayer's priority fee. */
  tipPerGas: bigint
  coin: BridgeToken
  tokens: readonly BridgeToken[]
}

export interface BridgeToken {
  symbol: string
  /** The zero address is the native coin. */
  address: Address
  decimals: number
  /** Its price in USD. */
  feed: Address
}

const COIN_DECIMALS = 18

/** @throws Error when the chain has no bridge */
export function toBridgeChain({
  deployed,
  ...chain
}: Pick<BridgeChain, 'name' | 'chainId' | 'client' | 'relayer' | 'tipPerGas'> & { deployed: Deployed }): BridgeChain {
  const { bridge, contracts, native, tokens } = deployed
  if (!bridge) throw new Error(`${chain.name} has no bridge contracts`)
  return {
    ...chain,
    ...bridge,
    feeProxy: contracts.erc20FeeProxy,
    coin: { symbol: native.symbol, address: ZERO_ADDRESS, decimals: COIN_DECIMALS, feed: native.feed },
    // A token with a fee on transfers would leave the escrow with less than it owes.
    tokens: tokens.filter(({ behaviour }) => behaviour !== 'FEE_ON_TRANSFER'),
  }
}

/** A token of the chain or its native coin. */
export function tokenAt({ coin, tokens }: BridgeChain, address: string): BridgeToken | undefined {
  return [coin, ...tokens].find((token) => token.address.toLowerCase() === address.toLowerCase())
}
