/** @jsxImportSource preact */
import { type Checkout as Client, findAsked, type PaymentRequest, type Route } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'
import { chainName } from '../shared/chain-name.ts'
import { subtractDecimals } from '../shared/decimals.ts'
import { formatMoney, formatShortAmount, formatWorth, symbolOf } from '../shared/format-amount.ts'
import { formatTime, formatUtc, toDate } from '../shared/format-time.ts'
import { isPayable, type RequestState, stateOf } from '../shared/request-state.ts'
import { ConfirmDialog, useConfirm } from './confirm-dialog.tsx'
import { type Connected, ConnectScreen } from './connect-screen.tsx'
import { sendToFrame } from './frame.ts'
import { payTexts } from './language.ts'
import { type Options, OptionsList, useOptions } from './options-list.tsx'
import { AskedScreen, PayingScreen } from './paying-screen.tsx'
import { fromStorage, isCounted, type Receipt, ReceiptView, useReceipt, useStorage } from './receipt.tsx'
import { RoutesScreen } from './routes-screen.tsx'
import { inSentence, sayAsked, sayUnderWay } from './say-outcome.ts'
import { Address, Money, Problem, Screen, SentTransaction } from './screen-parts.tsx'
import { type MadePayment, usePayment } from './use-payment.ts'
import { reasonOf, useRequest, type WatchedRequest } from './use-request.ts'
import { type Shop, useShop } from './use-shop.ts'

interface CheckoutProps {
  readonly paymentReference: string
  readonly checkout: Client
}

/** One request: what it is, and the one screen of what can be done now. */
export function Checkout({ paymentReference, checkout }: CheckoutProps) {
  const { request, error, lag } = useRequest(checkout, paymentReference)
  const state = request && stateOf(request)
  const shop = useShop(checkout)
  useEffect(() => {
    if (state !== undefined) sendToFrame({ type: 'waybill:status', paymentReference, status: state })
  }, [paymentReference, state])
  useEffect(() => {
    if (request !== undefined) document.title = titleOf(request)
  }, [request])
  const outstanding = request?.outstandingAmount ?? ''
  const options = useOptions({
    checkout,
    paymentReference,
    outstanding,
    isPayable: state !== undefined && isPayable(state),
  })
  if (error !== undefined) return <Problem reason={reasonOf(error)} onRetry={() => location.reload()} />
  // The shop's name and colours come with the amount: what comes later moves what somebody is about to press.
  if (request === undefined || state === undefined || shop === undefined) return <Waiting lag={lag} />
  return (
    <main class="pay stack gap-5">
      <Head {...{ request, state, shop, options }} />
      <p class="away warning small" role="status">
        {lag === 'AWAY' && payTexts.away}
      </p>
      <Steps {...{ request, state, checkout, shop, options }} />
    </main>
  )
}

/** The outline of the page, as it stood while the script was loading; in words for those who listen, and for all when it lasts. */
function Waiting({ lag }: { lag: WatchedRequest['lag'] }) {
  return (
    <main aria-busy="true">
      <h1 class="unseen">{payTexts.states.OPEN}</h1>
      <p class={lag === undefined ? 'unseen' : 'away warning small'} role="status">
        {lag === undefined ? payTexts.waiting : lag === 'BUSY' ? payTexts.busy : payTexts.away}
      </p>
      {['', 'sum', '', 'high', 'high', 'high'].map((size, place) => (
        <span key={place} class={`bone ${size}`} />
      ))}
    </main>
  )
}

const amountText = ({ amount, invoiceCurrency }: PaymentRequest) => formatMoney(amount, invoiceCurrency)

const titleOf = (request: PaymentRequest) =>
  isPayable(stateOf(request))
    ? payTexts.payNow(amountText(request))
    : `${payTexts.states[stateOf(request)]} · ${amountText(request)}`

interface HeadProps {
  readonly request: PaymentRequest
  readonly state: RequestState
  readonly shop: Shop
  readonly options: Options | undefined
}

/** Who asks for what: the shop, the request's title and amount, what it is worth, and how far it is paid. */
function Head({ request, state, shop, options }: HeadProps) {
  const { amount, invoiceCurrency, payee, outstandingAmount, expiresAt, network } = request
  const isPart = state === 'PARTIALLY_PAID'
  const shown = isPart ? outstandingAmount : amount
  const worth = options?.amount === shown ? worthOf(request, options.options) : ''
  return (
    <header class="request stack gap-1">
      {(shop.name !== undefined || shop.logo !== undefined) && (
        <p class="shop row gap-2">
          {shop.logo !== undefined && <img src={shop.logo} alt="" height={32} />}
          {shop.name !== undefined && <strong>{shop.name}</strong>}
        </p>
      )}
      {request.title !== undefined && <p class="title">{request.title}</p>}
      {isPayable(state) && <p class="quiet small">{payTexts.states[state]}</p>}
      <h1 class="sum">
        <Money value={shown} currency={invoiceCurrency} />
      </h1>
      {/* Its place is kept: what comes later moves what somebody is about to press. */}
      {(isPayable(state) || worth !== '') && <p class="quiet number worth">{worth}</p>}
      <p class="quiet small">
        {payTexts.to} <Address value={payee} /> {payTexts.routes.on(chainName(network))}
      </p>
      {isPart && (
        <p class="small">
          {payTexts.paidSoFar(
            `${formatMoney(subtractDecimals(amount, outstandingAmount), invoiceCurrency)} / ${amountText(request)}`,
          )}
        </p>
      )}
      {expiresAt !== undefined && isPayable(state) && (
        <p class="small">
          {payTexts.expires}{' '}
          <time dateTime={toDate(expiresAt).toISOString()} title={formatUtc(toDate(expiresAt))}>
            {formatTime(toDate(expiresAt))}
          </time>
        </p>
      )}
    </header>
  )
}

/**
 * What the amount is worth in another currency: of a request in coins in US dollars, of one in fiat in coins.
 *
 * @param options - of the amount that is shown
 */
function worthOf({ paymentCurrency, invoiceCurrency, network }: PaymentRequest, options: readonly Route[]): string {
  const direct = options.find(({ token, chain }) => token === symbolOf(paymentCurrency) && chain === network)
  if (direct === undefined) return ''
  // The sign of about says already that digits are left out.
  if (invoiceCurrency !== paymentCurrency)
    return `≈ ${formatShortAmount(direct.sourceAmount).replace('…', '')} ${direct.token}`
  return direct.sourceAmountInUsd === undefined ? '' : formatWorth(direct.sourceAmountInUsd)
}

interface StepsProps extends HeadProps {
  readonly checkout: Client
}

/** Connect, choose, pay; or the state of a request that cannot be paid. */
function Steps({ request, state, checkout, shop, options }: StepsProps) {
  const { paymentReference, outstandingAmount: outstanding } = request
  const { confirm, asked: question } = useConfirm()
  const [connected, setConnected] = useConnected()
  const [isReconnecting, setReconnecting] = useState(true)
  const mayPay = isPayable(state)
  const [mayAskAgain, setMayAskAgain] = useState(false)
  const asked = useAsked(paymentReference)
  const { payment, begin, resume, stop, leave } = usePayment({
    checkout,
    paymentReference,
    outstanding,
    isPayable: mayPay,
  })
  const isOver = !mayPay || payment?.end !== undefined
  useEffect(() => {
    if (isOver) question?.answer(false)
  }, [isOver, question])
  const { receipt, forget } = useReceipt(paymentReference, payment)
  const isUnderWay = receipt !== undefined && !isCounted(receipt, outstanding)
  if (!mayPay) return <Settled {...{ request, state, payment, receipt, isUnderWay, shop }} />
  const connect = async (found: Connected) => {
    setConnected(found)
    // Whoever asks anew has given the earlier payment up.
    if (mayAskAgain) return
    const end = await resume(found)
    // It has failed, or another transaction took its place.
    if (end === undefined && found.address === receipt?.wallet) forget()
  }
  const payBy = (route: Route) => {
    if (connected === undefined) return
    void begin(connected, route, mayAskAgain)
    setMayAskAgain(false)
  }
  const check = () => {
    leave()
    if (connected !== undefined) void resume(connected)
  }
  const payRest = () => {
    setMayAskAgain(true)
    leave()
  }
  const askAgain = () => {
    forget()
    payRest()
  }
  if (payment !== undefined)
    return (
      <>
        <PayingScreen
          payment={payment}
          isCounted={isCounted(receipt ?? payment, outstanding)}
          network={request.network}
          onPayRest={payRest}
          onBack={leave}
          onCheck={check}
          onAgain={payBy}
          onAskAgain={askAgain}
          onStop={stop}
        />
        {question !== undefined && <ConfirmDialog asked={question} does={payment.asking} />}
      </>
    )
  if (asked !== undefined && !mayAskAgain) return <AskedScreen words={sayAsked(asked)} onAskAgain={askAgain} />
  const sender = findSender(paymentReference)
  // The wallet of a payment that is not mined yet is connected again, to follow it.
  if (isUnderWay && (sender === undefined || connected !== undefined))
    return (
      <AskedScreen words={sayUnderWay(receipt)} onAskAgain={askAgain}>
        <SentTransaction hash={receipt.hash} explorer={receipt.explorer} />
      </AskedScreen>
    )
  const other = () => {
    setReconnecting(false)
    setConnected(undefined)
  }
  return (
    <>
      {sender !== undefined && sender !== connected?.address.toLowerCase() && (
        <p class="notice warn stack gap-3">{payTexts.sentFrom(inSentence(sender))}</p>
      )}
      {connected === undefined ? (
        <>
          <ConnectScreen
            sender={isReconnecting ? sender : undefined}
            paymentUri={options?.paymentUri}
            confirm={confirm}
            onConnected={(found) => void connect(found)}
          />
          <OptionsList found={options} network={request.network} />
        </>
      ) : (
        <RoutesScreen
          key={connected.address}
          {...{ checkout, paymentReference, connected, outstanding, network: request.network }}
          onOther={other}
          onChoose={payBy}
        />
      )}
    </>
  )
}

/** What a wallet was asked before and has not answered, read again when another tab of this browser stores or clears it. */
function useAsked(paymentReference: string) {
  const [, checkAgain] = useState(0)
  useStorage(() => checkAgain((checks) => checks + 1))
  return findAsked(paymentReference)
}

/** The wallet of the page, and none once its person has chosen another account in it. */
function useConnected() {
  const state = useState<Connected>()
  const [connected, setConnected] = state
  useEffect(() => {
    const provider = connected?.provider as Partial<Emitter> | undefined
    const change = (accounts?: readonly string[]) => {
      const address = accounts?.[0]
      setConnected((before) => (before === undefined || address === undefined ? undefined : { ...before, address }))
    }
    provider?.on?.('accountsChanged', change)
    return () => provider?.removeListener?.('accountsChanged', change)
  }, [connected?.provider])
  return state
}

interface Emitter {
  on(event: 'accountsChanged', listener: (accounts: readonly string[]) => void): void
  removeListener(event: 'accountsChanged', listener: (accounts: readonly string[]) => void): void
}

interface SettledProps extends Pick<StepsProps, 'request' | 'state' | 'shop'> {
  readonly receipt: Receipt | undefined
  /** What this page has paid, or was about to. */
  readonly payment: MadePayment | undefined
  /** Whether the receipt is of a payment that the request's sums do not hold. */
  readonly isUnderWay: boolean
}

/** How it ended, with what this browser has paid, and a way back to the shop. */
function Settled({ request, state, payment, receipt, isUnderWay, shop }: SettledProps) {
  const { confirming, final, closed, underWay } = payTexts
  const [tone, says] =
    state === 'PENDING'
      ? ['busy', confirming]
      : state === 'PAID'
        ? ['good', final]
        : isUnderWay
          ? ['warn', underWay.closed]
          : ['bad', closed]
  const hash = receipt === undefined ? payment?.hashes.at(-1) : undefined
  return (
    <Screen title={payTexts.states[state]} tone={tone}>
      <p role="status">
        {state === 'PAID' && /[1-9]/.test(request.overpaidAmount) ? (
          <>
            {payTexts.overpaid} <Money value={request.overpaidAmount} currency={request.invoiceCurrency} />
          </>
        ) : (
          says
        )}
      </p>
      {payment?.isAsking === true && <p>{payTexts.refuseNow}</p>}
      <SentTransaction hash={hash} explorer={payment?.quote?.explorer?.transaction} />
      {state === 'PENDING' && <progress aria-label={confirming} />}
      {receipt === undefined ? (
        <p class="small quiet">
          {payTexts.receipt.reference} <Address value={request.paymentReference} />
        </p>
      ) : (
        <ReceiptView {...{ receipt, request }} />
      )}
      {request.returnUrl !== undefined && (
        <a class="button main pay-button no-print" href={request.returnUrl} target="_top">
          {payTexts.back(shop.name)}
        </a>
      )}
    </Screen>
  )
}

/**
 * The wallet of a payment that was sent and is not mined yet, by what `pay` keeps: an entry of `localStorage` for each request and wallet. Of
 * those that are mined the receipt tells.
 */
export function findSender(
  paymentReference: string,
  entries: readonly [string, string][] = fromStorage(Object.entries<string>) ?? [],
): string | undefined {
  const start = `waybill:pay:${paymentReference.toLowerCase().replace(/^0x/, '')}:`
  const sent = entries.find(([name, kept]) => name.startsWith(start) && !kept.includes('"minedAtMs"'))
  return sent?.[0].slice(start.length)
}
