import { type Checkout, type PaymentCalldata, type Route, Route_StepKind } from '@waybill/client/checkout'
import type { PayOutcome, PayProgress, resumePay } from '@waybill/client/wallet'
import { useEffect, useRef, useState } from 'preact/hooks'
import { formatAmount } from '../shared/format-amount.ts'
import type { Connected } from './connect-screen.tsx'
import { payTexts } from './language.ts'
import { inSentence, type PaymentEnd } from './say-outcome.ts'

/** A payment that this page makes, or made before a reload. */
export interface MadePayment {
  /** The address that pays. */
  readonly wallet: string
  /** Undefined for one of before a reload. */
  readonly route: Route | undefined
  /** The quote whose transactions the wallet signs. */
  readonly quote?: PaymentCalldata
  /** What was outstanding when it began. */
  readonly outstanding: string
  readonly steps: readonly PayStep[]
  /** What each transaction does. */
  readonly kinds: readonly Route_StepKind[]
  /** What the wallet is asked for, in words. */
  readonly asking?: string
  /** Whether the wallet may show a question. */
  readonly isAsking: boolean
  /** Whether the payment itself has left the wallet. */
  readonly isSent: boolean
  readonly hashes: readonly string[]
  readonly end?: PaymentEnd
}

interface PaymentTerms {
  readonly checkout: Checkout
  readonly paymentReference: string
  readonly outstanding: string
  readonly isPayable: boolean
}

/** A payment that has just begun. */
const BEGUN = { steps: [], kinds: [], isAsking: false, isSent: false, hashes: [] }

/** The one payment of the page. It is kept while the request's state is shown, so that nothing is asked of a wallet again when that state changes. */
export function usePayment({ checkout, paymentReference, outstanding, isPayable }: PaymentTerms) {
  const [payment, setPayment] = useState<MadePayment>()
  const left = useRef<AbortController>(undefined)
  const isRunning = useRef(false)

  const run = async (
    { address, provider }: Connected,
    route: Route | undefined,
    work: (terms: WorkTerms) => Promise<PayOutcome | undefined>,
  ) => {
    // A second click comes before the first has changed the screen.
    if (isRunning.current) return
    isRunning.current = true
    const own = new AbortController()
    left.current = own
    const first: MadePayment = { wallet: address, route, outstanding, ...BEGUN }
    if (route !== undefined) setPayment(first)
    const onProgress = (event: PayProgress) => setPayment((before = first) => afterProgress(before, event))
    const { signal } = own
    const end = await work({ paymentReference, wallet: address, provider, signal, onProgress }).catch(
      (error: Error): PaymentEnd => (signal.reason === STOPPED ? NO_ANSWER : { outcome: 'NOT_PREPARED', error }),
    )
    isRunning.current = false
    // What has left the wallet stays as it is.
    const isChanged = signal.reason === CHANGED && (end?.outcome === 'NOT_PREPARED' || isUnanswered(end))
    setPayment((before = first) =>
      isChanged
        ? { ...before, end: { outcome: 'AMOUNT_CHANGED', isAsking: before.isAsking } }
        : end && withEnd(before, end),
    )
    return end
  }

  // Once others have paid, all of it or a part, no further step is asked of the wallet.
  const isSent = payment?.isSent === true
  const isOther = payment !== undefined && payment.outstanding !== outstanding
  useEffect(() => {
    if (!isSent && (!isPayable || isOther)) left.current?.abort(CHANGED)
  }, [isPayable, isOther, isSent])

  return {
    payment,
    begin: (connected: Connected, route: Route, askAgain: boolean) =>
      run(connected, route, async (terms) => {
        const { pay } = await import('@waybill/client/wallet')
        return pay({ ...terms, waybill: checkout, route, askAgain })
      }),
    /** Waits for a payment of before a reload. */
    resume: (connected: Connected) =>
      run(connected, undefined, async (terms) => (await import('@waybill/client/wallet')).resumePay(terms)),
    /** Ends the wait for a wallet that does not answer. */
    stop: () => left.current?.abort(STOPPED),
    leave: () => setPayment(undefined),
  }
}

type WorkTerms = Parameters<typeof resumePay>[0]

/** Others have paid. */
const CHANGED = new Error('the amount due has changed')

/** The payer waits no longer. */
const STOPPED = new Error('the payer has stopped waiting')

const NO_ANSWER = { outcome: 'FAILED', reason: 'NO_ANSWER', code: undefined, message: STOPPED.message } as const

function afterProgress(made: MadePayment, event: PayProgress): MadePayment {
  const before = { ...made, steps: addProgress(made.steps, inOurWords(event, made)), isAsking: false }
  switch (event.type) {
    case 'QUOTED': {
      // A batch asks for all of it at once.
      const asking = event.quote.steps.map(({ message }) => message).join(' ')
      const kinds = event.quote.steps.map(({ kind }) => kind)
      return { ...before, quote: event.quote, kinds, asking }
    }
    case 'ASKING':
      return { ...before, isAsking: true, asking: event.message }
    case 'SENT':
      return { ...before, isSent: event.step === made.kinds.length, hashes: [...before.hashes, event.transactionHash] }
    case 'BATCH_SENT':
      return { ...before, isSent: true }
    case 'WAITING_FOR_EARLIER':
      return { ...before, isSent: true, hashes: event.transactionHash === undefined ? [] : [event.transactionHash] }
    case 'ASKING_BATCH':
    case 'SWITCHING_CHAIN':
      return { ...before, isAsking: true }
    case 'FALLING_BACK':
    case 'STEP_MINED':
    case 'QUOTE_EXPIRED':
      return before
  }
}

/** What is asked of the wallet, in the page's language. The service says it in English alone. */
function inOurWords(event: PayProgress, { kinds }: MadePayment): PayProgress {
  if (event.type !== 'ASKING') return event
  const words: Readonly<Record<string, string>> = payTexts.steps.kinds
  return { ...event, message: words[Route_StepKind[kinds[event.step - 1] ?? 0] ?? ''] ?? event.message }
}

function withEnd(before: MadePayment, end: PaymentEnd): MadePayment {
  // The wallet may still show what it was asked for.
  if (end.outcome === 'NOT_PREPARED') return { ...before, end }
  const sent = 'transactionHashes' in end ? { hashes: end.transactionHashes, isSent: true } : {}
  return { ...before, ...sent, end, isAsking: isUnanswered(end) }
}

/** Whether the wallet may still show the question for the payment. */
const isUnanswered = (end: PaymentEnd | undefined) => end?.outcome === 'UNKNOWN' && end.reason === 'NO_ANSWER'

/** One line of what happens while a payment is made. */
interface PayStep {
  readonly id: string
  readonly says: string
  readonly state: 'NOW' | 'DONE'
}

/** The steps so far, after one more event: what came before is done. */
export function addProgress(steps: readonly PayStep[], event: PayProgress): readonly PayStep[] {
  const next = stepOf(event)
  if (next === undefined) return steps
  const before = steps.filter(({ id }) => id !== next.id).map((step) => ({ ...step, state: 'DONE' as const }))
  return [...before, next]
}

/** Addresses within a sentence, shortened. */
function shorten(sentence: string): string {
  return sentence.replaceAll(/0x[0-9a-fA-F]{40}/g, inSentence)
}

/** A swap may take more than its quote: the payer sees the limit. */
const sayQuote = ({ maxSourceAmount, route }: PaymentCalldata) =>
  payTexts.steps.atMost(`${formatAmount(maxSourceAmount)} ${route?.token ?? ''}`)

function stepOf(event: PayProgress): PayStep | undefined {
  const { steps } = payTexts
  const now = (id: string, says: string): PayStep => ({ id, says, state: 'NOW' })
  switch (event.type) {
    case 'WAITING_FOR_EARLIER':
      return now('earlier', steps.earlier)
    case 'QUOTED':
      return now('quote', sayQuote(event.quote))
    case 'SWITCHING_CHAIN':
      return now('chain', steps.chain)
    case 'ASKING':
      return now(`ask-${event.step}`, steps.asking(event.step, event.steps, shorten(event.message)))
    case 'ASKING_BATCH':
      return now('batch', steps.batch(event.steps))
    case 'FALLING_BACK':
      return undefined
    case 'SENT':
      return now(`sent-${event.step}`, steps.sent(event.step))
    case 'BATCH_SENT':
      return now('batch-sent', steps.sent(1))
    case 'STEP_MINED':
      return { id: `sent-${event.step}`, says: steps.mined(event.step), state: 'DONE' }
    case 'QUOTE_EXPIRED':
      return now('quote', steps.expired)
  }
}
