/** Describes a demo chain like a chains file. */
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { type Address, parseAddress } from '../../src/domain/address.ts'
import { FEED_HEARTBEAT_SEC, POOL_TOKEN_BETWEEN, USUAL_BLOCK_SEC } from './chain-specs.ts'
import type { Deployed } from './deployment.ts'

const COIN_DECIMALS = 18
/** Request's contracts are deployed in the first block after the genesis. */
const CREATION_BLOCK = 1
/** Except the swap contract, which is deployed with the exchange. */
const EXCHANGE_BLOCK = 2
/** The share of each swap that DemoPair keeps. */
const POOL_FEE_BPS = 30

export function describeChain(
  spec: { name: string; chainId: number; finalityDepth: number },
  rpcUrl: string,
  deployed: Deployed,
): ChainConfig {
  const { contracts, native, tokens, exchange, bridge, screeningOracle } = deployed
  return {
    name: spec.name,
    chainId: spec.chainId,
    rpcUrls: [rpcUrl],
    multicall: canonical(contracts.multicall3),
    native: {
      symbol: native.symbol,
      decimals: COIN_DECIMALS,
      usdFeed: canonical(native.feed),
      heartbeatSeconds: FEED_HEARTBEAT_SEC,
    },
    tokens: tokens.map((token) => ({
      symbol: token.symbol,
      address: canonical(token.address),
      decimals: token.decimals,
      usdFeed: canonical(token.feed),
      heartbeatSeconds: FEED_HEARTBEAT_SEC,
      ...(token.behaviour === 'TETHER' ? { approveReset: true } : {}),
    })),
    contracts: contractsOf(deployed),
    conversion: {
      path: canonical(contracts.conversionPath),
      paths: [...tokens, native].map(({ symbol }) => ({
        from: 'USD',
        token: symbol,
        via: [],
        heartbeatSeconds: FEED_HEARTBEAT_SEC,
      })),
    },
    ...(exchange && {
      swapV2: {
        router: canonical(exchange.address),
        factory: canonical(exchange.address),
        pairCodeHash: exchange.pairCodeHash,
        feeBps: POOL_FEE_BPS,
        through: [POOL_TOKEN_BETWEEN],
      },
    }),
    ...(bridge && describeBridge(bridge)),
    screening: { oracle: canonical(screeningOracle) },
    startBlock: 0,
    finality: { useFinalizedTag: false, depth: spec.finalityDepth },
    blockTimeSeconds: USUAL_BLOCK_SEC,
  }
}

/** With Request's versions of them. */
function contractsOf({ contracts, exchange }: Deployed): ChainConfig['contracts'] {
  const rows = [
    ['ERC20_FEE_PROXY', '0.2.0', contracts.erc20FeeProxy],
    ['ETHEREUM_FEE_PROXY', '0.2.0', contracts.ethereumFeeProxy],
    ['ERC20_CONVERSION_PROXY', '0.1.2', contracts.erc20ConversionProxy],
    ['ETH_CONVERSION_PROXY', '0.2.1', contracts.ethConversionProxy],
    ['BATCH_PAYMENTS', '0.1.0', contracts.batchPayments],
    ['ERC20_SWAP_TO_PAY', '0.4.0', exchange?.swapToPay],
  ] as const
  return rows.flatMap(([kind, version, address]) => {
    const fromBlock = kind === 'ERC20_SWAP_TO_PAY' ? EXCHANGE_BLOCK : CREATION_BLOCK
    return address === undefined ? [] : [{ kind, version, address: canonical(address), fromBlock }]
  })
}

/** The escrow takes the place of LI.FI's diamond, the executor that of its receiver and of the receiver's own executor. */
function describeBridge({
  escrow,
  executor,
}: NonNullable<Deployed['bridge']>): Pick<ChainConfig, 'executors' | 'lifi'> {
  const delivers = canonical(executor)
  return {
    executors: [delivers],
    lifi: { diamond: canonical(escrow), receiverAcrossV4: delivers, executor: delivers },
  }
}

/** @throws TypeError when the text is not an address */
export function canonical(address: string): Address {
  const parsed = parseAddress(address)
  if (!parsed.ok) throw new TypeError(`${address} is not an address: ${parsed.detail}`)
  return parsed.address
}
