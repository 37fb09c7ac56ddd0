/** Calls of every method with every identifier of the account `shop` of the seeds. */
import type { JsonObject } from '@bufbuild/protobuf'
import type { Payment } from '../../src/domain/payment.ts'
import cases from '../cases/isolation-probes.json' with { type: 'json' }
import type { Values } from '../support/data/seed-payments.ts'
import { fillIn } from '../support/fill-in.ts'
import { NOW } from '../support/service.ts'

export interface Probe {
  readonly name: string
  readonly request: JsonObject
  readonly headers?: Readonly<Record<string, string>>
  /** Whether the account itself gets the same answer as others, since the call holds no data of the account. */
  readonly tellsNothing?: boolean
}

/** A payment whose network and currencies have names that exist in no other account and in no table. */
export const ownNames: Payment = {
  id: '7e000000-0000-4000-8000-00000000aaaa',
  status: 'CONFIRMED',
  type: 'DIRECT',
  timestamp: NOW,
  updatedAt: NOW,
  amount: '7',
  currency: 'BEADS-SHOPNET',
  invoiceCurrency: 'CORALS',
  invoiceAmount: '70',
  amountInUsd: '0.7',
  network: 'SHOPNET',
  sourceNetwork: 'SHOPSOURCE',
  reference: 'INV-BEADS',
  fees: [],
  marks: [],
  metadata: { order: '1042' },
  exchangeRates: [],
  refunds: [],
  refundedAmount: '0',
  statusHistory: [],
}

/** A probe of the cases; its name is its request by default. */
type ProbeCase = Omit<Probe, 'name'> & Partial<Pick<Probe, 'name'>>

/** The methods that take the filters of searches, with the other fields that each filter needs. */
const FILTERED_METHODS: Readonly<Record<string, JsonObject>> = {
  'payments.v1.PaymentSearchService/SummarizePayments': {},
  'payments.v1.PaymentSearchService/ExportPayments': {},
  'payments.v1.PaymentSearchService/WatchPayments': { watchCursor: '${cursor.begin}' },
}

/** The probes of each method, by its full name. @param values - of the seeds, and cursors from answers of the account */
export function describeProbes(values: Values): Record<string, readonly Probe[]> {
  const methods: Readonly<Record<string, readonly ProbeCase[]>> = cases.methods
  const filled = Object.entries(methods).map(([method, probes]) => {
    const more = FILTERED_METHODS[method]
    const filters = more === undefined ? [] : cases.filters.map((filter) => ({ request: { ...filter, ...more } }))
    return [method, fillIn<readonly ProbeCase[]>([...filters, ...probes], values).map(nameProbe)] as const
  })
  return Object.fromEntries(filled)
}

function nameProbe(probe: ProbeCase): Probe {
  return { name: JSON.stringify(probe.request), ...probe }
}
