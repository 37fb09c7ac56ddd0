/**
 * Requests for a visitor to pay, one of each kind, open at every time: once one is paid, a new one takes its place. A wallet that holds the
 * token pays the first directly, one that holds another token by a swap, one on another chain over the bridge.
 */
import { type Address, keccak256 } from 'viem'
import { type DemoRequests, type DemoRequestTerms, draftTerms, referenceOf } from './history/demo-requests.ts'
import type { DemoChainName } from './network/chain-specs.ts'
import type { DemoChain } from './network/network.ts'

export interface PayableRequest {
  readonly kind: 'token' | 'native' | 'fiat'
  readonly terms: DemoRequestTerms
  readonly says: string
}

interface Draft {
  readonly kind: PayableRequest['kind']
  readonly chain: DemoChainName
  readonly symbol: string
  readonly amount: string
  readonly invoice?: 'USD'
  readonly says: string
}

const DRAFTS: readonly Draft[] = [
  {
    kind: 'token',
    chain: 'ETHEREUM',
    symbol: 'USDC',
    amount: '24.5',
    says: 'To pay: 24.5 USDC on ETHEREUM. Directly by the wallet direct, by a swap by otherToken, over the bridge by otherChain.',
  },
  {
    kind: 'native',
    chain: 'ETHEREUM',
    symbol: 'ETH',
    amount: '0.01',
    says: 'To pay: 0.01 ETH on ETHEREUM, by the wallets direct and coinsOnly.',
  },
  {
    kind: 'fiat',
    chain: 'ARBITRUM',
    symbol: 'USDC',
    invoice: 'USD',
    amount: '19.9',
    says: 'To pay: 19.90 US dollars in USDC on ARBITRUM at the current rate, by the wallet direct.',
  },
]

export interface PayableRequestKeeper {
  /** Creates the requests, and a new one for each that has been paid. @returns the current ones */
  keep(): Promise<readonly PayableRequest[]>
}

export function createPayableRequestKeeper(
  chains: readonly DemoChain[],
  { requests, now }: { requests: DemoRequests; now: () => Date },
): PayableRequestKeeper {
  const open = new Map<Draft, PayableRequest>()
  const serials = new Map<Draft, number>()

  /** The first of a kind that nobody has paid: the chain tells, so that a link holds over a restart. */
  async function findOpen(draft: Draft): Promise<PayableRequest> {
    const chain = chains.find(({ spec }) => spec.name === draft.chain)
    if (chain === undefined) throw new Error(`the demo has no chain ${draft.chain}`)
    for (let serial = serials.get(draft) ?? 1; ; serial++) {
      const request = describe(draft, serial, chain)
      if (await isPaid(chain, request)) continue
      serials.set(draft, serial)
      return request
    }
  }

  function describe({ kind, says, symbol, amount, invoice, chain: name }: Draft, serial: number, chain: DemoChain) {
    const terms = draftTerms({
      name: `payable ${kind} ${serial}`,
      payee: chain.people.payees[1] as Address,
      amount,
      invoice,
      symbol,
      chain: name,
      reference: `to-pay-${kind}-${serial}`,
      createdAtSec: Math.floor(now().getTime() / 1_000),
    })
    return { kind, terms, says }
  }

  return {
    async keep() {
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

async function isPaid({ client }: DemoChain, { terms }: PayableRequest): Promise<boolean> {
  const topics = [null, keccak256(referenceOf(terms))]
  const logs = await client.rpc.call<unknown[]>('eth_getLogs', [{ fromBlock: '0x0', topics }])
  return logs.length > 0
}
