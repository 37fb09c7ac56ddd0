/** @jsxImportSource preact */
import type { PaymentRequest } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'
import { chainName } from '../shared/chain-name.ts'
import { formatAmount } from '../shared/format-amount.ts'
import { formatTime, formatUtc } from '../shared/format-time.ts'
import { payTexts } from './language.ts'
import { Address, Button, Transaction } from './screen-parts.tsx'
import type { MadePayment } from './use-payment.ts'

/** What this browser has paid, kept for a later visit of the page. Amounts are decimal strings. */
export interface Receipt {
  readonly hash: string
  /** The explorer's page of a transaction: a template with `{hash}`. */
  readonly explorer?: string | undefined
  readonly amount?: string | undefined
  readonly token?: string | undefined
  readonly chain?: string | undefined
  readonly wallet?: string | undefined
  /** Milliseconds since 1970. */
  readonly sentAt: number
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

const readReceipt = (name: string) =>
  fromStorage((storage) => JSON.parse(storage.getItem(name) ?? 'null') as Receipt | null) ?? undefined

/** Whether nothing speaks against a payment that was sent: it has not failed, and nothing took its place. */
function stands({ end }: MadePayment): boolean {
  return end === undefined || end.outcome === 'MINED' || end.outcome === 'SENT'
}

/** The receipt of the page's payment while that stands, or of an earlier visit. */
export function useReceipt(paymentReference: string, payment: MadePayment | undefined, wallet: string | undefined) {
  const name = nameOf(paymentReference)
  const [receipt, setReceipt] = useState(() => readReceipt(name))
  const hash = payment?.isSent === true ? payment.hashes.at(-1) : undefined
  const isKept = payment !== undefined && stands(payment)
  useEffect(() => {
    if (hash === undefined) return
    const { route, explorer } = payment ?? {}
    const before = readReceipt(name)
    const next: Receipt = {
      // A payment of before a reload has no route any more.
      ...before,
      hash,
      ...(explorer !== undefined && { explorer }),
      ...(route && { amount: route.sourceAmount, token: route.token, chain: route.chain }),
      ...(wallet !== undefined && { wallet }),
      sentAt: before?.hash === hash ? before.sentAt : Date.now(),
    }
    const kept = isKept ? next : undefined
    // Without storage the receipt ends with the page.
    fromStorage((storage) => (kept ? storage.setItem(name, JSON.stringify(kept)) : storage.removeItem(name)))
    setReceipt(kept)
  }, [name, hash, isKept])
  return receipt
}

/** What was paid, to keep and to print. */
export function ReceiptView({ receipt, request }: { receipt: Receipt; request: PaymentRequest }) {
  const { receipt: texts } = payTexts
  const { hash, explorer, amount, token, chain, wallet, sentAt } = receipt
  const at = new Date(sentAt)
  return (
    <section class="stack gap-2" aria-label={texts.title}>
      <h3>{texts.title}</h3>
      <dl class="facts small">
        {amount !== undefined && token !== undefined && (
          <>
            <dt>{texts.amount}</dt>
            <dd>
              {formatAmount(amount)} {token} {chain !== undefined && payTexts.routes.on(chainName(chain))}
            </dd>
          </>
        )}
        {wallet !== undefined && (
          <>
            <dt>{texts.from}</dt>
            <dd>
              <Address value={wallet} />
            </dd>
          </>
        )}
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
        <dt>{payTexts.transaction}</dt>
        <dd>
          <Transaction hash={hash} explorer={explorer} />
        </dd>
        <dt>{texts.reference}</dt>
        <dd>
          <Address value={request.paymentReference} />
        </dd>
      </dl>
      <Button text={texts.print} kind="no-print" onClick={() => print()} />
    </section>
  )
}
