/** Moves the price feeds of a demo chain. */
import type { Address } from 'viem'
import type { ChainClient, Sending } from './chain-client.ts'
import type { DemoChainSpec } from './chain-specs.ts'
import { encodeSetFeed } from './demo-contracts.ts'
import type { Deployed } from './deployment.ts'
import { usdPrice } from './wandering-prices.ts'

/** Coins move each minute, stablecoins six times an hour, because the chain stores every move as a transaction. */
const COIN_INTERVAL_SEC = 60
const STABLECOIN_INTERVAL_SEC = 600
/** wei. Anvil orders a block by the fee caps: above those of payments, so that a new price comes before the payments in its block. */
const FIRST_IN_BLOCK_FEE = 2_000n * 10n ** 9n

export function createFeeds(chain: {
  client: ChainClient
  spec: DemoChainSpec
  deployed: Deployed
  people: { deployer: Address }
}) {
  const { client, spec, deployed, people } = chain
  const feeds = [
    { symbol: spec.native.symbol, address: deployed.native.feed, intervalSec: COIN_INTERVAL_SEC, movedSec: 0 },
    ...deployed.tokens.map((token) => ({
      symbol: token.symbol,
      address: token.feed,
      intervalSec: STABLECOIN_INTERVAL_SEC,
      movedSec: 0,
    })),
  ]
  const held = new Map<string, bigint>()
  const roundOf = (feed: (typeof feeds)[number], timeSec: number): Sending => {
    feed.movedSec = timeSec
    const fees = { maxFeePerGas: FIRST_IN_BLOCK_FEE, maxPriorityFeePerGas: spec.tipPerGas }
    const call = encodeSetFeed(feed.address, held.get(feed.symbol) ?? usdPrice(spec, feed.symbol, timeSec))
    return { from: people.deployer, call, options: { gas: 150_000n, ...fees } }
  }
  return {
    /** Sends a new round for each feed that is due at a time; the next block has them. */
    async move(timeSec: number): Promise<void> {
      for (const feed of feeds.filter(({ movedSec, intervalSec }) => timeSec - movedSec >= intervalSec)) {
        const { from, call, options } = roundOf(feed, timeSec)
        await client.send(from, call, options)
      }
    },
    /** Holds the price of a symbol, in USD with 8 decimals; undefined lets it move again. All feeds are due then. */
    hold(symbol: string, price: bigint | undefined): void {
      if (price === undefined) held.delete(symbol)
      else held.set(symbol, price)
      this.refresh()
    },
    /** Makes all feeds due. */
    refresh(): void {
      for (const feed of feeds) feed.movedSec = 0
    },
    /** What `move` would send for feeds of some symbols that are older than an age. The caller sends it. */
    due: (timeSec: number, { symbols, atMostAgeSec }: { symbols: readonly string[]; atMostAgeSec: number }) =>
      feeds
        .filter(({ symbol, movedSec }) => symbols.includes(symbol) && timeSec - movedSec > atMostAgeSec)
        .map((feed) => roundOf(feed, timeSec)),
  }
}
