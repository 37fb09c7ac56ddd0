/**
 * The contracts of a demo chain and their addresses. The addresses depend only on the deployer and its nonces, so a later start knows them
 * without stored state.
 */
import type { Address, Hex } from 'viem'
import { getContractAddress } from 'viem/utils'
import { currencyHash } from '../../src/contracts/currency-hash.ts'
import { encodeAggregators, encodeCreation, FEED_DECIMALS, MULTICALL3_ADDRESS } from './demo-contracts.ts'
import { type PoolSpec, planExchange } from './swap-exchange.ts'

export type TokenBehaviour = 'PLAIN' | 'TETHER' | 'FEE_ON_TRANSFER'

export interface TokenSpec {
  symbol: string
  name: string
  decimals: number
  behaviour: TokenBehaviour
  /** Price in USD with the feed's 8 decimals. */
  usdPrice: bigint
}

export interface ChainSpec {
  native: { symbol: string; usdPrice: bigint }
  tokens: readonly TokenSpec[]
  /** The pools of the chain's exchange; without pools there is no exchange. */
  pools?: readonly PoolSpec[]
  /** Changes the addresses of tokens and feeds, so that a token has different addresses on different chains. */
  addressSeed: number
}

/** The deployer's transactions in the order of their nonces. */
export type DeploymentPlan = ReturnType<typeof planDeployment>
export type Deployed = DeploymentPlan['deployed']
export type DeployedToken = Deployed['tokens'][number]
export type DeployedContracts = Deployed['contracts']

const TOKEN_CONTRACTS = {
  PLAIN: 'DemoToken',
  TETHER: 'TetherLikeToken',
  FEE_ON_TRANSFER: 'FeeOnTransferToken',
} as const

/** The address of US dollars in conversion paths. */
export const USD_HASH = currencyHash('iso4217', 'USD') as string as Address

/**
 * Plans the transactions and addresses of a chain's contracts.
 *
 * @param startTimeSec - time of the feeds' first round
 * @param relayer - of the bridge; without a relayer there is no bridge
 * @param screened - a wallet that the screening oracle lists from the start
 */
export function planDeployment(
  spec: ChainSpec,
  { deployer, relayer, screened }: { deployer: Address; relayer?: Address; screened?: Address },
  startTimeSec: number,
) {
  const conversionHash = currencyHash('eth', spec.native.symbol) as string as Address
  const common = createInOrder(deployer, 0)
  const erc20FeeProxy = common.add(encodeCreation('ERC20FeeProxy'))
  const ethereumFeeProxy = common.add(encodeCreation('EthereumFeeProxy'))
  const conversionPath = common.add(encodeCreation('ChainlinkConversionPath', [conversionHash, deployer]))
  const erc20ConversionProxy = common.add(
    encodeCreation('Erc20ConversionProxy', [erc20FeeProxy, conversionPath, deployer]),
  )
  const ethConversionProxy = common.add(
    encodeCreation('EthConversionProxy', [ethereumFeeProxy, conversionPath, conversionHash, deployer]),
  )
  const paymentBatch = common.add(encodeCreation('PaymentBatch'))
  const batchPayments = common.add(encodeCreation('BatchPayments', [erc20FeeProxy, ethereumFeeProxy, deployer]))

  const ownNonce = 1_000 * (spec.addressSeed + 1)
  const own = createInOrder(deployer, ownNonce)
  const addFeed = (symbol: string, price: bigint): Address =>
    own.add(encodeCreation('SettableFeed', [`${symbol} / USD`, FEED_DECIMALS, price, BigInt(startTimeSec)]))
  const nativeFeed = addFeed(spec.native.symbol, spec.native.usdPrice)
  const tokens = spec.tokens.map(({ symbol, name, decimals, behaviour, usdPrice }) => ({
    symbol,
    decimals,
    behaviour,
    address: own.add(encodeCreation(TOKEN_CONTRACTS[behaviour], [name, symbol, decimals])),
    feed: addFeed(symbol, usdPrice),
  }))
  const { exchange, calls = [] } = spec.pools
    ? planExchange((code) => own.add(code), { owner: deployer, erc20FeeProxy, tokens, pools: spec.pools })
    : {}
  // The escrow takes deposits, the executor delivers.
  const bridge = relayer && {
    escrow: own.add(encodeCreation('DemoEscrow', [relayer])),
    executor: own.add(encodeCreation('DemoExecutor', [erc20FeeProxy])),
  }
  const screeningOracle = own.add(encodeCreation('ScreeningOracle', [screened ? [screened] : []]))

  const aggregators = [
    { input: conversionHash, output: USD_HASH, feed: nativeFeed },
    ...tokens.map((token) => ({ input: token.address, output: USD_HASH, feed: token.feed })),
  ]
  return {
    deployed: {
      contracts: {
        erc20FeeProxy,
        ethereumFeeProxy,
        erc20ConversionProxy,
        ethConversionProxy,
        conversionPath,
        paymentBatch,
        batchPayments,
        multicall3: MULTICALL3_ADDRESS,
      },
      native: { symbol: spec.native.symbol, feed: nativeFeed, conversionHash },
      tokens,
      screeningOracle,
      ...(exchange ? { exchange } : {}),
      ...(bridge ? { bridge } : {}),
    },
    /** From nonce 0: Request's contracts, the same on every chain. */
    common: common.code,
    /** The deployer's nonce before `own`. */
    ownNonce,
    /** Tokens and feeds, then the exchange, the bridge, and the screening oracle. */
    own: own.code,
    calls: [encodeAggregators(conversionPath, aggregators), ...calls],
  }
}

function createInOrder(deployer: Address, firstNonce: number): { code: Hex[]; add(code: Hex): Address } {
  const code: Hex[] = []
  return {
    code,
    add(creation) {
      code.push(creation)
      return getContractAddress({ from: deployer, nonce: BigInt(firstNonce + code.length - 1) })
    },
  }
}
