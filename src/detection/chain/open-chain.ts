import type { Knex } from 'knex'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Logger } from '../../domain/logger.ts'
import type { NodeLimits } from '../../nodes/node-limits.ts'
import { createRpcClient, type RpcClient } from '../../nodes/rpc-client.ts'
import type { FindingTools } from '../find/find-payments.ts'
import { sortContracts } from '../match/followed-contracts.ts'
import { type ChainReader, createChainReader } from '../read/chain-reader.ts'
import { createMarketReader } from '../read/market.ts'
import { LIVE } from '../read/patience.ts'
import { createTraceReader } from '../read/trace-reader.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import { createPaymentWriter, type PaymentWriter } from '../write/payment-writer.ts'

/** How a chain's nodes are read and its events matched. */
export interface ChainReading {
  readonly tools: FindingTools
  readonly reader: ChainReader
  /** Of all URLs. */
  readonly client: RpcClient
}

/** One URL of a chain, asked by itself to compare it with the others. */
export interface NodePeer {
  readonly url: string
  readonly host: string
  readonly client: RpcClient
  readonly reader: ChainReader
}

/** One chain: how it is read and its payments written. For following it and for reading transactions again. */
export interface OpenChain extends ChainReading {
  readonly writer: PaymentWriter
  /** For back-fill, whose doubts about a node are its own. */
  readonly backfill: ChainReading
  /** Each of its URLs, in their order. */
  readonly peers: readonly NodePeer[]
}

export interface OpenChainOptions {
  readonly knex: Knex
  readonly config: ChainConfig
  readonly tokens: TokenDirectory
  readonly repository: DetectionRepository
  readonly logger: Logger
  readonly clock: () => Date
  /** What the process knows of its nodes' limits; default nothing. */
  readonly limits?: NodeLimits | undefined
  /** For figures that a payment can do without, such as prices and traces, while the chain is followed; default 2,000. */
  readonly patienceMs?: number
}

/** Puts together the parts of one configured chain. Does not ask the nodes anything yet. */
export function openChain(options: OpenChainOptions): OpenChain {
  const { knex, config, clock } = options
  const chain = { chainId: caip2Of(config.chainId), network: config.name }
  const writer = createPaymentWriter({ knex, chain, clock })
  return {
    ...openReading(options),
    writer,
    backfill: openReading(options),
    peers: config.rpcUrls.map((url) => openPeer(options, url)),
  }
}

function openPeer({ config, clock, limits }: OpenChainOptions, url: string): NodePeer {
  const { chainId } = config
  const client = createRpcClient({ urls: [url], chainId, clock, limits })
  const addresses = followedContracts(config).map(({ address }) => address)
  return { url, host: new URL(url).host, client, reader: createChainReader(client, addresses) }
}

function openReading(options: OpenChainOptions): ChainReading {
  const { config, tokens, repository, clock, logger } = options
  const { name: network, conversion, screening } = config
  const chainId = caip2Of(config.chainId)
  const client = createRpcClient({
    urls: config.rpcUrls,
    chainId: config.chainId,
    clock,
    onNodeChange(node, change) {
      // Where there is only one URL, the health of the chain shows it.
      if (config.rpcUrls.length === 1) return
      const fields = { chain: network, node }
      if (change.open) logger.warn({ ...fields, detail: change.detail }, 'the node fails and is left alone for a while')
      else logger.info(fields, 'the node answers again')
    },
    limits: options.limits,
  })
  const addresses = followedContracts(config).map(({ address }) => address)
  const reader = createChainReader(client, addresses)
  const native = tokens.native(network)
  if (native === undefined) throw new Error(`the chain ${network} is not in the directory of tokens`)
  const tools: FindingTools = {
    chain: {
      name: network,
      chainId,
      native,
      followed: sortContracts(config),
      hasL1Fee: config.l1Fee?.isInReceipts ?? false,
    },
    tokens,
    repository,
    market: createMarketReader({ reader, conversion, oracle: screening?.oracle, native, tokens, clock }),
    traces: createTraceReader({ client, network, logger, clock }),
    live: { ...LIVE, ms: options.patienceMs ?? LIVE.ms },
  }
  return { tools, reader, client }
}
