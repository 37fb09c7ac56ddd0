/**
 * Requests for a visitor to pay, one of each kind, open at every time: once one is paid or cancelled, a new one takes its place. A wallet that
 * holds the token pays the first directly, one that holds another token by a swap, one on another chain over the bridge.
 */
import type { Address } from 'viem'
import { type Asked, type DemoRequests, type DemoRequestTerms, draftTerms } from './history/demo-requests.ts'
import type { DemoChain } from './network/network.ts'

export interface PayableRequest {
  readonly serial: number
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

export function createPayableRequestKeeper(
  chains: readonly DemoChain[],
  { requests, now }: { requests: DemoRequests; now: () => Date },
) {
  let current: readonly PayableRequest[] = []

  function describe({ kind, says, invoice, asks: [amount, symbol, name] }: Draft, serial: number): PayableRequest {
    const terms = draftTerms({
      name: `payable ${kind} ${serial}`,
      payee: chains[0]?.people.payees[1] as Address,
      amount,
      invoice,
      symbol,
      chain: name,
      reference: `to-pay-${kind}-${serial}`,
      title: 'Two books and postage',
      createdAtSec: Math.floor(now().getTime() / 1_000),
    })
    return { serial, kind, terms, says }
  }

  /** The first of a kind that nobody has paid or cancelled. Nothing else is stored, and a link holds over a restart. */
  async function findOpen(draft: Draft, place: number): Promise<PayableRequest> {
    let found = current[place] ?? describe(draft, 1)
    while (await requests.isClosed(found.terms.requestId)) found = describe(draft, found.serial + 1)
    return found
  }

  return {
    /** Creates the requests, and a new one for each that has been paid or cancelled. @returns the current ones */
    async keep(): Promise<readonly PayableRequest[]> {
      const found = await Promise.all(DRAFTS.map(findOpen))
      const fresh = found.filter((request) => !current.includes(request))
      // Together, because a newcomer waits for it.
      if (fresh.length > 0) await requests.create(fresh.map(({ terms }) => terms))
      current = found
      return current
    },
  }
}
