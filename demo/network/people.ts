/**
 * The accounts that act on the demo's chains. The nodes derive them from the demo's own mnemonic and hold them unlocked: the service
 * itself holds no key and signs nothing.
 */

import type { Address } from 'viem'
import { getAddress } from 'viem/utils'
import type { DemoChainName } from './chain-specs.ts'
import type { Rpc } from './rpc.ts'

/** Public, so anybody can empty its accounts: never send anything to them on a real chain. */
export const DEMO_MNEMONIC = 'chronic shove carry usual across service unfair final strike analyst fitness royal'

export const DEPLOYER_PLACE = 0
export const RELAYER_PLACE = 24
/** Holds plenty, and sends nothing once the history is made. */
export const SPOOFER_PLACE = 3

/** The wallet that the screening oracles list. */
const SCREENED_PLACE = 25

export const DEMO_ACCOUNTS = 26

/** The balances of a demo wallet on a chain: tokens in whole units, `coins` in units of the native coin. */
interface WalletHolding {
  chain: DemoChainName
  coins?: number
  tokens?: Readonly<Record<string, number>>
}

interface DemoWalletSpec {
  name: string
  place: number
  says: string
  /** Makes batches: several calls as one. */
  batches?: boolean
  holds: readonly WalletHolding[]
}

/** The wallets that demo.json offers for trying routes. They never pay by themselves, so their descriptions stay true. */
export const DEMO_WALLETS: readonly DemoWalletSpec[] = [
  {
    // Routing asks the bridge only for the best-funded tokens. Mostly DAI, so that the choice does not depend on the prices of the hour.
    name: 'direct',
    place: 16,
    says: 'Holds USDC, USDT, DAI and gas on every chain: can pay any request directly, those in US dollars at the current rate.',
    holds: (['ETHEREUM', 'POLYGON', 'ARBITRUM', 'BSC'] as const).map((chain) => ({
      chain,
      coins: 50,
      tokens: { USDC: 25_000, USDT: 25_000, DAI: 30_000 },
    })),
  },
  {
    name: 'batching',
    place: 15,
    says: 'Holds USDC and gas on ETHEREUM and ARBITRUM, and makes batches: approves and pays with one confirmation.',
    batches: true,
    holds: (['ETHEREUM', 'ARBITRUM'] as const).map((chain) => ({ chain, coins: 5, tokens: { USDC: 5_000 } })),
  },
  {
    name: 'otherToken',
    place: 17,
    says: 'Holds only DAI and gas on ETHEREUM: pays a USDC request there by a swap in a deep pool.',
    holds: [{ chain: 'ETHEREUM', coins: 2, tokens: { DAI: 10_000 } }],
  },
  {
    name: 'otherChain',
    place: 18,
    says: 'Holds only USDC and gas on ARBITRUM: pays a request on another chain over the bridge.',
    holds: [{ chain: 'ARBITRUM', coins: 2, tokens: { USDC: 10_000 } }],
  },
  {
    name: 'noGas',
    place: 19,
    says: 'Holds USDC on every chain but no gas: routes warn that gas is missing.',
    holds: (['ETHEREUM', 'POLYGON', 'ARBITRUM', 'BSC'] as const).map((chain) => ({ chain, tokens: { USDC: 10_000 } })),
  },
  {
    name: 'coinsOnly',
    place: 20,
    says: 'Holds the native coin of every chain and no token: pays the request in ETH directly, and requests in tokens over the bridge.',
    holds: (['ETHEREUM', 'POLYGON', 'ARBITRUM', 'BSC'] as const).map((chain) => ({ chain, coins: 20 })),
  },
  {
    name: 'justEnough',
    place: 21,
    says: 'Holds exactly 150 USDC and gas on ETHEREUM: enough for the open request, but not with a platform fee on top.',
    holds: [{ chain: 'ETHEREUM', coins: 1, tokens: { USDC: 150 } }],
  },
  {
    name: 'shallowPool',
    place: 23,
    says: 'Holds only USDT and gas on ETHEREUM: pays a USDC request there by a swap in a shallow pool, with a price impact.',
    holds: [{ chain: 'ETHEREUM', coins: 2, tokens: { USDT: 10_000 } }],
  },
  {
    name: 'screened',
    place: SCREENED_PLACE,
    says: 'Holds USDC and gas on ETHEREUM, and is on the list of the screening oracles: gets no routes.',
    holds: [{ chain: 'ETHEREUM', coins: 2, tokens: { USDC: 10_000 } }],
  },
  { name: 'empty', place: 22, says: 'Holds nothing: gets no routes, and a reason for each missing one.', holds: [] },
]

export type DemoPeople = Awaited<ReturnType<typeof readPeople>>

/**
 * Asks a node for the accounts: deriving them here would take longer than starting the chains. The place of each role is fixed, because addresses
 * stand in demo.json and in payments on the chain.
 */
export async function readPeople(rpc: Rpc) {
  const accounts = (await rpc.call<Address[]>('eth_accounts')).map((address) => getAddress(address))
  const at = (place: number): Address => {
    const address = accounts[place]
    if (address === undefined) throw new RangeError(`the node derives ${accounts.length} accounts, not ${place + 1}`)
    return address
  }
  return {
    deployer: at(DEPLOYER_PLACE),
    spoofer: at(SPOOFER_PLACE),
    feeCollector: at(4),
    payers: [5, 6, 7, 8, 9, 10].map(at) as readonly Address[],
    payees: [11, 12, 13, 14].map(at) as readonly Address[],
    /** Of the bridge. */
    relayer: at(RELAYER_PLACE),
    screened: at(SCREENED_PLACE),
    wallets: DEMO_WALLETS.map((wallet) => ({ ...wallet, address: at(wallet.place) })),
  }
}
