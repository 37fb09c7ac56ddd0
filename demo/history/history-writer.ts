/**
 * Makes planned payments on a fresh chain, each in a block with the planned time.
 */
import type { Hex } from 'viem'
import { assertAllSucceeded, toCall } from '../network/chain-client.ts'
import { createFeeds } from '../network/feeds.ts'
import type { DemoChain } from '../network/network.ts'
import { toQuantity } from '../network/rpc.ts'
import { encodePlannedPayment, type PlannedPayment } from './planned-payment.ts'

/** Maximum age of a price at the time of a payment. */
const MAX_FEED_AGE_SEC = 1_800

const BLOCKS_WITH_FEE = 6

/**
 * Mines every payment at its time, then empty blocks up to `toSec`, so that all of them are final.
 *
 * @param payments - in any order, all before `toSec`
 * @throws Error when a payment is reverted
 */
export async function writeHistory(
  chain: DemoChain,
  payments: readonly PlannedPayment[],
  toSec: number,
): Promise<void> {
  const { client, spec, deployed, people } = chain
  const { rpc } = client
  const feeds = createFeeds(chain)
  const hashes: Hex[] = []
  let timeSec = (await client.head()).timestampSec
  let nonce = Number(await rpc.call('eth_getTransactionCount', [people.deployer, 'latest']))
  for (const payment of payments.toSorted((a, b) => a.atSec - b.atSec)) {
    timeSec = Math.max(payment.atSec, timeSec + 1)
    const symbols = [payment.symbol, spec.native.symbol]
    const moves = feeds
      .due(timeSec, { symbols, atMostAgeSec: MAX_FEED_AGE_SEC })
      .map((move) => ({ ...move, options: { ...move.options, nonce: nonce++ } }))
    const call = encodePlannedPayment(spec, deployed, { ...payment, atSec: timeSec })
    const paid = { from: payment.payer, call, options: { maxPriorityFeePerGas: spec.tipPerGas } }
    const [hash] = await rpc.callAll<Hex>([
      ...[paid, ...moves].map(toCall),
      ['anvil_setNextBlockBaseFeePerGas', [toQuantity(spec.baseFeePerGas)]],
    ])
    hashes.push(hash as Hex)
    await rpc.call('evm_mine', [toQuantity(timeSec)])
  }
  await mineUntilFinal(chain, timeSec, toSec)
  await assertAllSucceeded(client, hashes)
}

/** Empty blocks lower the base fee, block by block; the last ones have that of the chain, since callers look at five to tell what gas costs. */
async function mineUntilFinal({ client, spec }: DemoChain, fromSec: number, toSec: number): Promise<void> {
  const stepSec = Math.max(1, Math.floor((toSec - fromSec) / (spec.finalityDepth + 1)))
  const first = Math.max(0, spec.finalityDepth - BLOCKS_WITH_FEE)
  if (first > 0) await client.rpc.call('anvil_mine', [toQuantity(first), toQuantity(stepSec)])
  for (let block = first + 1; block <= spec.finalityDepth; block++) {
    await client.mine({ timestampSec: fromSec + block * stepSec, baseFeePerGas: spec.baseFeePerGas })
  }
}
