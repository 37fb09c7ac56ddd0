/**
 * Requests for a visitor to pay, one of each kind, open at every time: once one is paid or cancelled, a new one takes its place. A wallet that
 * holds the token pays the first directly, one that holds another token by a swap, one on another chain over the bridge.
 */
import type { Address, Hex } from 'viem'
import { keccak256 } from 'viem/utils'
import {
  type Asked,
  type DemoRequests,
  type DemoRequestTerms,
  draftTerms,
  referenceOf,
} from './history/demo-requests.ts'
import type { DemoChain } from './network/network.ts'

export interface PayableRequest {
  readonly kind: 'token' | 'native' | 'fiat'
  readonly terms: DemoRequestTerms
  readonly says: string
}

interface Draft {
  readonly kind: PayableRequest['kind']
  readonly asks: Asked
  readonly invoice?: 'USD'
  readonly says: string
}

const DRAFTS: readonly Draft[] = [
  {
    kind: 'token',
    asks: ['24.5', 'USDC', 'ETHEREUM'],
    says: 'To pay: 24.5 USDC on ETHEREUM. Directly by the wallet direct, by a swap by otherToken, over the bridge by otherChain.',
  },
  {
    kind: 'native',
    asks: ['0.01', 'ETH', 'ETHEREUM'],
    says: 'To pay: 0.01 ETH on ETHEREUM, by the wallets direct and coinsOnly.',
  },
  {
    kind: 'fiat',
    asks: ['19.9', 'USDC', 'ARBITRUM'],
    invoice: 'USD',
    says: 'To pay: 19.90 US dollars in USDC on ARBITRUM at the current rate, by the wallet direct.',
  },
]

/** Requests of a kind that are looked at together: after a restart, the first ones may all be paid. */
const CHECKED_AT = 8

export function createPayableRequestKeeper(
  chains: readonly DemoChain[],
  { requests, now }: { requests: DemoRequests; now: () => Date },
) {
  const open = new Map<Draft, PayableRequest>()
  const serials = new Map<Draft, number>()

  /**
   * The first of a kind that nobody has paid or cancelled. The chain tells of payments before the service has found them, the service of the
   * rest; nothing else is stored, and a link holds over a restart.
   */
  async function findOpen(draft: Draft): Promise<PayableRequest> {
    const chain = chains.find(({ spec }) => spec.name === draft.asks[2])
    if (chain === undefined) throw new Error(`the demo has no chain ${draft.asks[2]}`)
    for (let first = serials.get(draft) ?? 1; ; first += CHECKED_AT) {
      const candidates = Array.from({ length: CHECKED_AT }, (_, place) => describe(draft, first + place, chain))
      const [paid, closed] = await Promise.all([
        findPaid(chain, candidates),
        requests.findClosed(candidates.map(({ terms }) => terms.requestId)),
      ])
      const place = candidates.findIndex(({ terms }) => !paid.has(topicOf(terms)) && !closed.has(terms.requestId))
      const found = candidates[place]
      if (found === undefined) continue
      serials.set(draft, first + place)
      return found
    }
  }

  function describe({ kind, says, invoice, asks: [amount, symbol, name] }: Draft, serial: number, chain: DemoChain) {
    const terms = draftTerms({
      name: `payable ${kind} ${serial}`,
      payee: chain.people.payees[1] as Address,
      amount,
      invoice,
      symbol,
      chain: name,
      reference: `to-pay-${kind}-${serial}`,
      title: 'Two books and postage',
      createdAtSec: Math.floor(now().getTime() / 1_000),
    })
    return { kind, terms, says }
  }

  return {
    /** Creates the requests, and a new one for each that has been paid or cancelled. @returns the current ones */
    async keep(): Promise<readonly PayableRequest[]> {
      const found = await Promise.all(DRAFTS.map(async (draft) => ({ draft, request: await findOpen(draft) })))
      const fresh = found.filter(({ draft, request }) => {
        const before = open.get(draft)
        return before === undefined || referenceOf(before.terms) !== referenceOf(request.terms)
      })
      // Together, because a newcomer waits for it.
      if (fresh.length > 0) await requests.create(fresh.map(({ request }) => request.terms))
      for (const { draft, request } of fresh) open.set(draft, request)
      return [...open.values()]
    },
  }
}

const topicOf = (terms: DemoRequestTerms): Hex => keccak256(referenceOf(terms))

/** @returns the topics of those that the chain has a payment for */
async function findPaid({ client }: DemoChain, candidates: readonly PayableRequest[]): Promise<ReadonlySet<Hex>> {
  const topics = [null, candidates.map(({ terms }) => topicOf(terms))]
  const logs = await client.rpc.call<{ topics: [Hex, Hex] }[]>('eth_getLogs', [{ fromBlock: '0x0', topics }])
  return new Set(logs.map(({ topics: [, reference] }) => reference))
}
