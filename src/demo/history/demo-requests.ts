/**
 * The payment requests of the demo: terms that are the same at every start, and what this room asks of the one that
 * stores them.
 */
import { createHash } from 'node:crypto'
import { type Address, parseAddress } from '../../domain/address.ts'
import { currencyId } from '../../domain/currency.ts'
import { paymentReferenceOf } from '../../domain/payment-reference.ts'
import type { DemoChainName } from '../network/chain-specs.ts'

/** What account `demo` asks to be paid, in the fields and forms of `POST /v1/request`. */
export interface DemoRequestTerms {
  /** `01` and 64 digits. */
  requestId: string
  /** 16 digits. */
  salt: string
  payee: Address
  /** Decimal string, in human units of `invoiceCurrency`. */
  amount: string
  /** Currency id, or `USD` for a request in fiat. */
  invoiceCurrency: string
  /** Currency id. */
  paymentCurrency: string
  network: DemoChainName
  reference: string
  /** When it would have been made: before its payments. No term: a request that is stored keeps the time it has. */
  createdAt: Date
}

/** What the demo needs from the service: somewhere to put the requests that it pays. */
export interface DemoRequests {
  /**
   * Stores requests of account `demo`. Resolves when all of them are stored, so that payments made from then on find them.
   * Called again with the same requests at every start, it changes nothing.
   */
  create(terms: readonly DemoRequestTerms[]): Promise<void>
}

export interface RequestDraft {
  /** Unique and the same at every start: id and salt follow from it. */
  name: string
  payee: string
  amount: string
  /** A symbol, or `USD`. The payment currency's symbol unless told. */
  invoice?: 'USD'
  symbol: string
  chain: DemoChainName
  reference: string
  createdAtSec: number
}

/** Completes a draft: the id and the salt come from its name alone. */
export function draftTerms(draft: RequestDraft): DemoRequestTerms {
  const paymentCurrency = currencyId(draft.symbol, draft.chain)
  return {
    requestId: `01${digest(`request ${draft.name}`)}`,
    salt: digest(`salt ${draft.name}`).slice(0, 16),
    payee: canonical(draft.payee),
    amount: draft.amount,
    invoiceCurrency: draft.invoice ?? paymentCurrency,
    paymentCurrency,
    network: draft.chain,
    reference: draft.reference,
    createdAt: new Date(draft.createdAtSec * 1000),
  }
}

/** The reference under which a request is paid: `0x` and 16 digits. */
export function referenceOf(terms: DemoRequestTerms): `0x${string}` {
  return paymentReferenceOf(terms.requestId, terms.salt, terms.payee)
}

function digest(text: string): string {
  return createHash('sha256').update(`waybill demo ${text}`).digest('hex')
}

function canonical(address: string): Address {
  const parsed = parseAddress(address)
  if (!parsed.ok) throw new TypeError(`${address} is no address: ${parsed.detail}`)
  return parsed.address
}
