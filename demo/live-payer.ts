/** The live payer: at the rate of the history, and more often at night, it creates a request and pays it. */
import type { Hex } from 'viem'
import type { Logger } from '../src/domain/logger.ts'
import type { DemoRequests } from './history/demo-requests.ts'
import { planPurchase } from './history/history.ts'
import { encodePlannedPayment } from './history/planned-payment.ts'
import { createRandom } from './history/random.ts'
import { waitSec } from './history/trade.ts'
import { assertSucceeded } from './network/chain-client.ts'
import type { DemoChain } from './network/network.ts'

/** The first payment comes soon, so that somebody who has just started the demo sees one arrive, and stays pending on the slowest chain. */
const FIRST_AFTER_MS = 15_000

/** So that at night, too, somebody who watches sees a payment every few minutes. */
const MAX_WAIT_MS = 8 * 60_000

interface Context {
  readonly requests: DemoRequests
  /** See trade.ts. */
  readonly madeAtSec: number
  readonly now: () => Date
  readonly logger: Logger
}

export function createLivePayer(chains: readonly DemoChain[], { requests, madeAtSec, now, logger }: Context) {
  const random = createRandom(now().getTime())
  const share = chains.reduce((sum, { spec }) => sum + spec.tradeShare, 0)
  const lastPaid = new Map<string, Hex>()
  let isFirst = true

  /** A reverted payment leaves no event and would go unnoticed. */
  async function checkLast({ client, spec }: DemoChain): Promise<void> {
    const hash = lastPaid.get(spec.name)
    if (hash === undefined) return
    await assertSucceeded(client, hash).catch((error: unknown) => {
      logger.warn({ chain: spec.name, err: error }, 'a payment of the live payer failed')
    })
  }

  function pickChain(): DemoChain {
    let place = random.next() * share
    const [slowest] = chains.toSorted((a, b) => b.spec.finalityDepth - a.spec.finalityDepth)
    const picked = chains.find(({ spec }) => (place -= spec.tradeShare) < 0)
    const found = lastPaid.size === 0 ? slowest : (picked ?? slowest)
    if (found === undefined) throw new RangeError('there is no chain to pay on')
    return found
  }

  return {
    /** The time until the next payment, in milliseconds; drawn anew at each call. */
    nextInMs(): number {
      const drawnMs = waitSec(now().getTime() / 1_000, { madeAtSec, share, next: random.next }) * 1_000
      const waitMs = isFirst ? FIRST_AFTER_MS : Math.min(drawnMs, MAX_WAIT_MS)
      isFirst = false
      return waitMs
    },

    /** Creates a request and pays it, or a part of it; the chain's clock mines the payment. */
    async payOnce(): Promise<void> {
      const chain = pickChain()
      const { client, spec, people, deployed } = chain
      await checkLast(chain)
      const at = now().getTime()
      const names = { name: `live ${spec.name} ${at}`, reference: `live-${at}` }
      const { terms, payments } = planPurchase({ spec, people, random, atSec: Math.floor(at / 1_000), ...names })
      const [payment] = payments
      if (payment === undefined) return
      await requests.create([terms])
      const call = encodePlannedPayment(spec, deployed, payment)
      const hash = await client.send(payment.payer, call, { maxPriorityFeePerGas: spec.tipPerGas })
      lastPaid.set(spec.name, hash)
      logger.debug({ chain: spec.name, hash }, 'the live payer paid')
    },
  }
}
