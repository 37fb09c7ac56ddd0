import type { Address } from 'viem'
import type { ChainClient } from '../network/chain-client.ts'
import { ZERO_ADDRESS } from '../network/demo-contracts.ts'
import type { Deployed } from '../network/deployment.ts'

/** A chain between which the bridge carries, with its contracts there. */
export interface BridgeChain {
  name: string
  chainId: number
  client: ChainClient
  /** Signs quotes, delivers and takes: an account that the node holds, with tokens that the executor may pull. */
  relayer: Address
  escrow: Address
  executor: Address
  /** What the executor calls. */
  feeProxy: Address
  /** wei; what the relayer offers the miner. */
  tipPerGas: bigint
  coin: BridgeToken
  tokens: readonly BridgeToken[]
}

export interface BridgeToken {
  symbol: string
  /** The zero address is the chain's coin. */
  address: Address
  decimals: number
  /** Its price in USD. */
  feed: Address
}

const COIN_DECIMALS = 18

/** @throws Error where no bridge stands on the chain */
export function toBridgeChain({
  deployed,
  ...chain
}: Pick<BridgeChain, 'name' | 'chainId' | 'client' | 'relayer' | 'tipPerGas'> & { deployed: Deployed }): BridgeChain {
  const { bridge, contracts, native, tokens } = deployed
  if (!bridge) throw new Error(`no bridge stands on ${chain.name}`)
  return {
    ...chain,
    ...bridge,
    feeProxy: contracts.erc20FeeProxy,
    coin: { symbol: native.symbol, address: ZERO_ADDRESS, decimals: COIN_DECIMALS, feed: native.feed },
    // A token that keeps a part of each transfer would leave the escrow with less than it owes.
    tokens: tokens.filter(({ behaviour }) => behaviour !== 'FEE_ON_TRANSFER'),
  }
}

/** A token of the chain, its coin included. */
export function tokenAt({ coin, tokens }: BridgeChain, address: string): BridgeToken | undefined {
  return [coin, ...tokens].find((token) => token.address.toLowerCase() === address.toLowerCase())
}
