/**
 * Requests for a visitor to pay, one of each kind, open at every time: once one is paid, a new one takes its place. A wallet that holds the
 * token pays the first directly, one that holds another token by a swap, one on another chain over the bridge.
 */
import { type Address, type Hex, keccak256 } from 'viem'
import { type DemoRequests, type DemoRequestTerms, draftTerms, referenceOf } from './history/demo-requests.ts'
import type { DemoChainName } from './network/chain-specs.ts'
import type { DemoChain } from './network/network.ts'
import { toQuantity } from './network/rpc.ts'

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
  const open = new Map<string, { readonly request: PayableRequest; readonly fromBlock: bigint }>()

  async function create(draft: Draft, chain: DemoChain) {
    const at = now().getTime()
    const { kind, says, symbol, amount, invoice } = draft
    const terms = draftTerms({
      name: `payable ${kind} ${at}`,
      payee: chain.people.payees[1] as Address,
      amount,
      invoice,
      symbol,
      chain: draft.chain,
      reference: `to-pay-${kind}-${at}`,
      createdAtSec: Math.floor(at / 1_000),
    })
    const { number: fromBlock } = await chain.client.head()
    await requests.create([terms])
    open.set(kind, { request: { kind, terms, says }, fromBlock })
  }

  return {
    async keep() {
      for (const draft of DRAFTS) {
        const chain = chains.find(({ spec }) => spec.name === draft.chain)
        if (chain === undefined) throw new Error(`the demo has no chain ${draft.chain}`)
        const current = open.get(draft.kind)
        if (current === undefined || (await isPaid(chain, current.request, current.fromBlock)))
          await create(draft, chain)
      }
      return [...open.values()].map(({ request }) => request)
    },
  }
}

async function isPaid({ client }: DemoChain, { terms }: PayableRequest, from: bigint): Promise<boolean> {
  const topics = [null, keccak256(referenceOf(terms))]
  const logs = await client.rpc.call<Hex[]>('eth_getLogs', [{ fromBlock: toQuantity(from), topics }])
  return logs.length > 0
}
