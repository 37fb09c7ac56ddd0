/**
 * The payment requests of the demo, whose terms are the same at every start, and the interface of the store that the demo
 * needs for them.
 */
import { createHash } from 'node:crypto'
import type { Address } from '../../src/domain/address.ts'
import { currencyId } from '../../src/domain/currency.ts'
import { paymentReferenceOf } from '../../src/domain/identifiers.ts'
import { canonical } from '../network/chain-config.ts'
import type { DemoChainName } from '../network/chain-specs.ts'

/** The terms of a request of account `demo`, with the fields and forms of `POST /v1/request`. */
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
  /** What payers read. */
  title?: string
  /** RFC 3339. */
  expiresAt?: string
  /** Not one of the terms, as `createdAt`. */
  cancelledAt?: Date
  /** Time of creation, before its payments. Not one of the terms: a stored request keeps its own time. */
  createdAt: Date
}

/** What the demo needs of the service: a store for its requests. */
export interface DemoRequests {
  /**
   * Stores requests of account `demo`. Resolves when all are stored, so that later payments find them. Every start stores the same
   * requests again, which changes nothing.
   */
  create(terms: readonly DemoRequestTerms[]): Promise<void>
  /** Whether nobody is to pay a request any more: it is cancelled, expired, or paid in part or in whole. One that is not stored is open. */
  isClosed(requestId: string): Promise<boolean>
}

/** What a request asks for: `['24.5', 'USDC', 'ETHEREUM']`. */
export type Asked = readonly [amount: string, symbol: string, chain: DemoChainName]

interface RequestDraft {
  /** Unique, and the same at every start: id and salt are derived from it. */
  name: string
  payee: string
  amount: string
  /** A symbol or `USD`; by default the payment currency's symbol. */
  invoice?: 'USD' | undefined
  symbol: string
  chain: DemoChainName
  reference: string
  title?: string | undefined
  createdAtSec: number
  expiresAtSec?: number | undefined
  cancelledAtSec?: number | undefined
}

/** Completes a draft; id and salt are derived from its name only. */
export function draftTerms(draft: RequestDraft): DemoRequestTerms {
  const { expiresAtSec, cancelledAtSec, title } = draft
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
    ...(title !== undefined && { title }),
    ...(expiresAtSec !== undefined && { expiresAt: new Date(expiresAtSec * 1000).toISOString() }),
    ...(cancelledAtSec !== undefined && { cancelledAt: new Date(cancelledAtSec * 1000) }),
    createdAt: new Date(draft.createdAtSec * 1000),
  }
}

/** The payment reference of a request: `0x` and 16 digits. */
export function referenceOf(terms: DemoRequestTerms): `0x${string}` {
  return paymentReferenceOf(terms.requestId, terms.salt, terms.payee)
}

function digest(text: string): string {
  return createHash('sha256').update(`waybill demo ${text}`).digest('hex')
}
