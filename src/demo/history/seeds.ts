/**
 * The requests that demo.json offers, with the payments that bring each into its documented state. The demo never pays them
 * again, so they keep that state. The request with the pending payment is in pending-request.ts.
 */
import { parseAmount } from '../../domain/decimal.ts'
import type { DemoChainName, DemoChainSpec } from '../network/chain-specs.ts'
import { FIAT_DECIMALS, ZERO_ADDRESS } from '../network/demo-contracts.ts'
import { worthlessToken } from '../network/funding.ts'
import { type DemoRequestTerms, draftTerms, referenceOf } from './demo-requests.ts'
import type { DemoPeople } from './people.ts'
import { decimalsOf, type PlannedPayment } from './planned-payment.ts'

export interface Seed {
  name: string
  says: string
  terms: DemoRequestTerms
  payments: readonly PlannedPayment[]
}

interface SeedDraft {
  name: string
  chain: DemoChainName
  symbol: string
  invoice?: 'USD'
  amount: string
  /** The amounts of its payments. */
  paid?: readonly string[]
  /** Also sends events that look like payments but are none. */
  spoofed?: boolean
  /** Why nobody is to pay it any more. */
  closed?: 'EXPIRED' | 'CANCELLED'
  says: string
}

/** Before the first payment of the seeds. */
const CREATED_SEC_AGO = 3_600
const CLOSED_SEC_AGO = 1_800

const SEEDS: readonly SeedDraft[] = [
  { name: 'open', chain: 'ETHEREUM', symbol: 'USDC', amount: '150', says: 'Open: 150 USDC on ETHEREUM.' },
  {
    name: 'open-tether',
    chain: 'BSC',
    symbol: 'USDT',
    amount: '80.5',
    says: 'Open: 80.5 USDT on BSC, where USDT has 18 decimals.',
  },
  {
    name: 'partially-paid',
    chain: 'ARBITRUM',
    symbol: 'USDC',
    amount: '300',
    paid: ['120'],
    says: 'Partially paid: 120 of 300 USDC on ARBITRUM, 180 outstanding.',
  },
  {
    name: 'paid',
    chain: 'BSC',
    symbol: 'DAI',
    amount: '250',
    paid: ['100', '150'],
    says: 'Paid: 250 DAI on BSC in two final payments.',
  },
  {
    name: 'overpaid',
    chain: 'ETHEREUM',
    symbol: 'USDC',
    amount: '100',
    paid: ['130'],
    says: 'Overpaid: 130 USDC for a request of 100 on ETHEREUM.',
  },
  {
    name: 'fiat',
    chain: 'ARBITRUM',
    symbol: 'USDC',
    invoice: 'USD',
    amount: '500',
    says: 'Open: 500 US dollars, to be paid in USDC on ARBITRUM at the current rate. The wallet direct can pay it.',
  },
  {
    name: 'fiat-paid',
    chain: 'ETHEREUM',
    symbol: 'ETH',
    invoice: 'USD',
    amount: '200',
    paid: ['200'],
    says: 'Paid: 200 US dollars, in ETH on ETHEREUM at the rate of that time.',
  },
  { name: 'native', chain: 'ETHEREUM', symbol: 'ETH', amount: '0.25', says: 'Open: 0.25 ETH on ETHEREUM.' },
  {
    name: 'spoofed',
    chain: 'ETHEREUM',
    symbol: 'USDC',
    amount: '1000',
    spoofed: true,
    says:
      'Open, although a spoofer sent a worthless "USDC" to the payee and real USDC to his own wallet under its reference: ' +
      'neither counts.',
  },
  // After all others, since the place decides on payer, payee and time.
  {
    name: 'expired',
    chain: 'POLYGON',
    symbol: 'USDC',
    amount: '45',
    closed: 'EXPIRED',
    says: 'Expired: 45 USDC on POLYGON, which nobody paid in time. It takes no payment any more.',
  },
  {
    name: 'cancelled',
    chain: 'BSC',
    symbol: 'DAI',
    amount: '60',
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
    draft.chain === spec.name ? [planSeed(draft, { spec, people, atSec: atSec + index * 20, index })] : [],
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
  const terms = draftTerms({
    name: `seed ${draft.name}`,
    payee,
    amount: draft.amount,
    invoice: draft.invoice,
    symbol: draft.symbol,
    chain: draft.chain,
    reference: `demo-${draft.name}`,
    createdAtSec: atSec - CREATED_SEC_AGO,
    expiresAtSec: draft.closed === 'EXPIRED' ? atSec - CLOSED_SEC_AGO : undefined,
    cancelledAtSec: draft.closed === 'CANCELLED' ? atSec - CLOSED_SEC_AGO : undefined,
  })
  const unit = draft.invoice ? FIAT_DECIMALS : decimalsOf(spec, draft.symbol)
  const payment = (amount: string, place: number): PlannedPayment => ({
    atSec: atSec + place * 5,
    payer: at(people.payers, index),
    payee,
    paymentReference: referenceOf(terms),
    symbol: draft.symbol,
    amount: toUnits(amount, unit),
    feeAmount: 0n,
    feeAddress: ZERO_ADDRESS,
    conversion: draft.invoice !== undefined,
    exact: true,
  })
  const genuine = (draft.paid ?? []).map(payment)
  const payments = draft.spoofed ? [...genuine, ...spoofs(payment(draft.amount, 0), people)] : genuine
  return { name: draft.name, says: draft.says, terms, payments }
}

/** The payee gets a worthless token, and the spoofer pays himself the real one: for both the real proxy emits its event. */
function spoofs(payment: PlannedPayment, people: DemoPeople): PlannedPayment[] {
  const spoof = { ...payment, payer: people.spoofer }
  return [
    { ...spoof, token: worthlessToken(people.spoofer) },
    { ...spoof, atSec: spoof.atSec + 5, payee: people.spoofer },
  ]
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
