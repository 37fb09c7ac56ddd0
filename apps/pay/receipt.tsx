/** @jsxImportSource preact */
import type { PaymentRequest } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'
import { chainName } from '../shared/chain-name.ts'
import { shareOf, subtractDecimals } from '../shared/decimals.ts'
import { formatAmount } from '../shared/format-amount.ts'
import { formatTime, formatUtc } from '../shared/format-time.ts'
import { payTexts } from './language.ts'
import { Address, Button, Transaction } from './screen-parts.tsx'
import type { MadePayment } from './use-payment.ts'

/** What this browser has paid, kept for a later visit of the page. Amounts are decimal strings. */
export interface Receipt {
  /** Undefined for a batch that is not mined. */
  readonly hash: string | undefined
  /** The explorer's page of a transaction: a template with `{hash}`. */
  readonly explorer?: string | undefined
  /** The most that the signed transactions may take. */
  readonly amount?: string | undefined
  /** Whether they may take less: a swap. */
  readonly isAtMost?: boolean | undefined
  readonly token?: string | undefined
  readonly chain?: string | undefined
  readonly wallet: string
  /** What was outstanding when the payment began, and is what it pays. */
  readonly outstanding: string
  /** Milliseconds since 1970. */
  readonly sentAt: number
}

/** Of what was outstanding, in percent: a swap or a bridge may bring a little less, and parts of other payers are smaller. */
const COUNTED_PERCENT = 90

/** Whether a request's sums hold a payment, by what was outstanding when it began and is now. */
export function isCounted({ outstanding: before }: Pick<Receipt, 'outstanding'>, now: string): boolean {
  return shareOf(subtractDecimals(before, now), before) >= COUNTED_PERCENT
}

const nameOf = (paymentReference: string) => `waybill:receipt:${paymentReference.toLowerCase().replace(/^0x/, '')}`

/** A browser may deny the page its storage, and something else may have written there. */
export function fromStorage<T>(work: (storage: Storage) => T): T | undefined {
  try {
    return work(localStorage)
  } catch {
    return undefined
  }
}

const readReceipt = (name: string) => fromStorage((storage) => parseReceipt(storage.getItem(name) ?? 'null'))

/** @returns undefined for what is no receipt @throws SyntaxError for what is no JSON */
export function parseReceipt(text: string): Receipt | undefined {
  const { wallet, outstanding, sentAt, ...more } = (JSON.parse(text) ?? {}) as Partial<Receipt>
  if (typeof wallet !== 'string' || typeof sentAt !== 'number' || !/^\d+(?:\.\d+)?$/.test(`${outstanding}`))
    return undefined
  return { hash: undefined, ...more, wallet, sentAt, outstanding: `${outstanding}` }
}

/** Whether nothing speaks against a payment that was sent: it has not failed, and nothing took its place. */
function stands({ end }: MadePayment): boolean {
  return end === undefined || end.outcome === 'MINED' || end.outcome === 'SENT'
}

/** The receipt of the page's payment while that stands, or of an earlier visit or another tab. */
export function useReceipt(paymentReference: string, payment: MadePayment | undefined) {
  const name = nameOf(paymentReference)
  const [receipt, setReceipt] = useState(() => readReceipt(name))
  const keep = (kept: Receipt | undefined) => {
    // Without storage the receipt ends with the page.
    fromStorage((storage) => (kept ? storage.setItem(name, JSON.stringify(kept)) : storage.removeItem(name)))
    setReceipt(kept)
  }
  const hash = payment?.hashes.at(-1)
  const isSent = payment?.isSent === true
  const isKept = payment !== undefined && stands(payment)
  useEffect(() => {
    if (!isSent) return
    const before = readReceipt(name)
    // A batch has its hash later; a payment of before a reload has no quote any more.
    const isSame = before !== undefined && (before.hash ?? hash) === hash
    keep(isKept ? { ...(isSame ? before : begun(payment)), ...signed(payment), hash } : undefined)
  }, [name, isSent, hash, isKept])
  useStorage(() => setReceipt(readReceipt(name)))
  return { receipt, forget: () => keep(undefined) }
}

const begun = ({ wallet, outstanding }: MadePayment) => ({ wallet, outstanding, sentAt: Date.now() })

function signed({ quote }: MadePayment) {
  if (quote?.route === undefined) return {}
  const { maxSourceAmount: amount, route, explorer } = quote
  const isAtMost = amount !== route.sourceAmount
  return { amount, isAtMost, token: route.token, chain: route.chain, explorer: explorer?.transaction }
}

/** Calls when another tab of this browser changes what is stored. */
export function useStorage(onChange: () => void): void {
  useEffect(() => {
    addEventListener('storage', onChange)
    return () => removeEventListener('storage', onChange)
  }, [])
}

/** What was paid, to keep and to print. */
export function ReceiptView({ receipt, request }: { receipt: Receipt; request: PaymentRequest }) {
  const { receipt: texts } = payTexts
  const { hash, explorer, amount, isAtMost, token, chain, wallet, sentAt } = receipt
  const at = new Date(sentAt)
  return (
    <section class="stack gap-2" aria-label={texts.title}>
      <h3>{texts.title}</h3>
      <dl class="facts small">
        {amount !== undefined && token !== undefined && (
          <>
            <dt>{texts.amount}</dt>
            <dd>
              {isAtMost === true
                ? texts.atMost(`${formatAmount(amount)} ${token}`)
                : `${formatAmount(amount)} ${token}`}{' '}
              {chain !== undefined && payTexts.routes.on(chainName(chain))}
            </dd>
          </>
        )}
        <dt>{texts.from}</dt>
        <dd>
          <Address value={wallet} />
        </dd>
        <dt>{texts.to}</dt>
        <dd>
          <Address value={request.payee} />
        </dd>
        <dt>{texts.time}</dt>
        <dd>
          <time dateTime={at.toISOString()} title={formatUtc(at)}>
            {formatTime(at)}
          </time>
        </dd>
        {hash !== undefined && (
          <>
            <dt>{payTexts.transaction}</dt>
            <dd>
              <Transaction hash={hash} explorer={explorer} />
            </dd>
          </>
        )}
        <dt>{texts.reference}</dt>
        <dd>
          <Address value={request.paymentReference} />
        </dd>
      </dl>
      <Button text={texts.print} kind="no-print" onClick={() => print()} />
    </section>
  )
}
