/**
 * The requests that demo.json offers, with the payments that bring each into its documented state. The demo never pays them
 * again, so they keep that state.
 */
import { parseAmount } from '../../src/domain/decimal.ts'
import type { DemoChainSpec } from '../network/chain-specs.ts'
import { FIAT_DECIMALS, ZERO_ADDRESS } from '../network/demo-contracts.ts'
import type { DemoPeople } from '../network/people.ts'
import { type Asked, type DemoRequestTerms, draftTerms, referenceOf } from './demo-requests.ts'
import { decimalsOf, type PlannedPayment } from './planned-payment.ts'

export interface Seed {
  name: string
  says: string
  terms: DemoRequestTerms
  payments: readonly PlannedPayment[]
}

interface SeedDraft {
  name: string
  asks: Asked
  invoice?: 'USD'
  /** The amounts of its payments. */
  paid?: readonly string[]
  /** The spoofer pays themselves: the proxy emits its event for that too. */
  spoofed?: boolean
  /** Why nobody is to pay it any more. */
  closed?: 'EXPIRED' | 'CANCELLED'
  says: string
}

/** Before the first payment of the seeds. */
const CREATED_SEC_AGO = 3_600
const CLOSED_SEC_AGO = 1_800

const SEEDS: readonly SeedDraft[] = [
  { name: 'open', asks: ['150', 'USDC', 'ETHEREUM'], says: 'Open: 150 USDC on ETHEREUM.' },
  {
    name: 'open-tether',
    asks: ['80.5', 'USDT', 'BSC'],
    says: 'Open: 80.5 USDT on BSC, where USDT has 18 decimals.',
  },
  {
    name: 'partially-paid',
    asks: ['300', 'USDC', 'ARBITRUM'],
    paid: ['120'],
    says: 'Partially paid: 120 of 300 USDC on ARBITRUM, 180 outstanding.',
  },
  {
    name: 'paid',
    asks: ['250', 'DAI', 'BSC'],
    paid: ['100', '150'],
    says: 'Paid: 250 DAI on BSC in two final payments.',
  },
  {
    name: 'overpaid',
    asks: ['100', 'USDC', 'ETHEREUM'],
    paid: ['130'],
    says: 'Overpaid: 130 USDC for a request of 100 on ETHEREUM.',
  },
  {
    name: 'fiat',
    asks: ['500', 'USDC', 'ARBITRUM'],
    invoice: 'USD',
    says: 'Open: 500 US dollars, to be paid in USDC on ARBITRUM at the current rate. The wallet direct can pay it.',
  },
  {
    name: 'fiat-paid',
    asks: ['200', 'ETH', 'ETHEREUM'],
    invoice: 'USD',
    paid: ['200'],
    says: 'Paid: 200 US dollars, in ETH on ETHEREUM at the rate of that time.',
  },
  { name: 'native', asks: ['0.25', 'ETH', 'ETHEREUM'], says: 'Open: 0.25 ETH on ETHEREUM.' },
  {
    name: 'spoofed',
    asks: ['1000', 'USDC', 'ETHEREUM'],
    spoofed: true,
    says: 'Open, although a spoofer sent USDC to their own wallet under its reference.',
  },
  // After all others, since the place decides on payer, payee and time.
  {
    name: 'expired',
    asks: ['45', 'USDC', 'POLYGON'],
    closed: 'EXPIRED',
    says: 'Expired: 45 USDC on POLYGON, which nobody paid in time. It takes no payment any more.',
  },
  {
    name: 'cancelled',
    asks: ['60', 'DAI', 'BSC'],
    closed: 'CANCELLED',
    says: 'Cancelled: 60 DAI on BSC, which the shop cancelled before anybody paid. It takes no payment any more.',
  },
]

/**
 * The seeds of one chain.
 *
 * @param atSec - time of the first payment; the requests are created an hour before, and closed half an hour before
 */
export function planSeeds(spec: DemoChainSpec, people: DemoPeople, atSec: number): readonly Seed[] {
  return SEEDS.flatMap((draft, index) =>
    draft.asks[2] === spec.name ? [planSeed(draft, { spec, people, atSec: atSec + index * 20, index })] : [],
  )
}

/** The order in demo.json, across chains. */
export function inListedOrder(seeds: readonly Seed[]): readonly Seed[] {
  const place = (seed: Seed): number => SEEDS.findIndex((draft) => draft.name === seed.name)
  return seeds.toSorted((a, b) => place(a) - place(b))
}

function planSeed(
  draft: SeedDraft,
  { spec, people, atSec, index }: { spec: DemoChainSpec; people: DemoPeople; atSec: number; index: number },
): Seed {
  const payee = at(people.payees, index)
  const [asked, symbol, chain] = draft.asks
  const terms = draftTerms({
    name: `seed ${draft.name}`,
    payee,
    amount: asked,
    invoice: draft.invoice,
    symbol,
    chain,
    reference: `demo-${draft.name}`,
    createdAtSec: atSec - CREATED_SEC_AGO,
    expiresAtSec: draft.closed === 'EXPIRED' ? atSec - CLOSED_SEC_AGO : undefined,
    cancelledAtSec: draft.closed === 'CANCELLED' ? atSec - CLOSED_SEC_AGO : undefined,
  })
  const unit = draft.invoice ? FIAT_DECIMALS : decimalsOf(spec, symbol)
  const payment = (amount: string, place: number): PlannedPayment => ({
    atSec: atSec + place * 5,
    payer: at(people.payers, index),
    payee,
    paymentReference: referenceOf(terms),
    symbol,
    amount: toUnits(amount, unit),
    feeAmount: 0n,
    feeAddress: ZERO_ADDRESS,
    conversion: draft.invoice !== undefined,
    exact: true,
  })
  const { spoofer } = people
  const spoofed = draft.spoofed ? [{ ...payment(asked, 0), payer: spoofer, payee: spoofer }] : []
  const payments = [...(draft.paid ?? []).map(payment), ...spoofed]
  return { name: draft.name, says: draft.says, terms, payments }
}

/** @throws RangeError when it has more decimals than its unit */
function toUnits(amount: string, decimals: number): bigint {
  const units = parseAmount(amount, decimals)
  if (units === undefined) throw new RangeError(`${amount} is not an amount with at most ${decimals} decimals`)
  return units
}

function at<T>(list: readonly T[], index: number): T {
  const item = list[index % list.length]
  if (item === undefined) throw new RangeError('the list is empty')
  return item
}
