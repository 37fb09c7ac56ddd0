/** @jsxImportSource preact */
import { type Checkout as Client, type PaymentRequest, type Route, WaybillCallError } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'
import { formatAmount } from '../look/format-amount.ts'
import { formatTime, formatUtc, toDate } from '../look/format-time.ts'
import { payTexts } from '../look/texts.ts'
import { ConfirmDialog, useConfirm } from './confirm-dialog.tsx'
import { type Connected, ConnectScreen } from './connect-screen.tsx'
import { PayingScreen } from './paying-screen.tsx'
import { isPayable, type RequestState, stateOf } from './request-state.ts'
import { RoutesScreen } from './routes-screen.tsx'
import { Address, Money, Problem, Screen, symbolOf } from './screen-parts.tsx'
import { tellFrame } from './tell-frame.ts'
import { useRequest } from './use-request.ts'

interface CheckoutProps {
  readonly paymentReference: string
  readonly checkout: Client
}

/** One request: what it is, and the one screen of what can be done now. */
export function Checkout({ paymentReference, checkout }: CheckoutProps) {
  const { request, error, isAway } = useRequest(checkout, paymentReference)
  const now = useNow()
  const state = request === undefined ? undefined : stateOf(request, now)
  useEffect(() => {
    if (state !== undefined) tellFrame({ paymentReference, status: state })
  }, [paymentReference, state])
  useEffect(() => {
    if (request !== undefined) document.title = payTexts.title(amountText(request))
  }, [request])
  if (error !== undefined) return <Problem {...problemOf(error)} onRetry={() => location.reload()} />
  if (request === undefined || state === undefined) return <Waiting isAway={isAway} />
  return (
    <main class="pay">
      <Head request={request} state={state} />
      {isAway && (
        <p class="away small" role="status">
          {payTexts.away}
        </p>
      )}
      <Steps {...{ request, state, checkout }} />
    </main>
  )
}

function Waiting({ isAway }: { isAway: boolean }) {
  return (
    <main class="pay">
      <p class="quiet" role="status">
        {isAway ? payTexts.away : payTexts.waiting}
      </p>
    </main>
  )
}

function problemOf({ reason }: WaybillCallError) {
  const { problems } = payTexts
  return reason in problems ? problems[reason as keyof typeof problems] : problems.OTHER
}

const amountText = ({ amount, invoiceCurrency }: PaymentRequest) =>
  `${formatAmount(amount)} ${symbolOf(invoiceCurrency)}`

function Head({ request, state }: { request: PaymentRequest; state: RequestState }) {
  const { amount, invoiceCurrency, payee, paidAmount, pendingAmount, outstandingAmount, expiresAt, network } = request
  const isPart = state === 'PARTIALLY_PAID'
  return (
    <header class="request">
      <p class="quiet small">{payTexts.heading}</p>
      <h1 class="sum">
        <Money value={isPart ? outstandingAmount : amount} currency={invoiceCurrency} />
      </h1>
      <p class="quiet">
        {payTexts.to} <Address value={payee} /> {payTexts.routes.on(network)}
      </p>
      {isPart && (
        <p class="small">
          {payTexts.paidSoFar(
            `${formatAmount(paidAmount === '0' ? pendingAmount : paidAmount)} / ${formatAmount(amount)} ${symbolOf(invoiceCurrency)}`,
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

interface StepsProps {
  readonly request: PaymentRequest
  readonly state: RequestState
  readonly checkout: Client
}

/** Connect, choose, pay; or the state of a request that cannot be paid. */
function Steps({ request, state, checkout }: StepsProps) {
  const { confirm, asked } = useConfirm()
  const [connected, setConnected] = useState<Connected>()
  const [chosen, setChosen] = useState<Route>()
  const [hashes, setHashes] = useState<readonly string[]>([])
  const { paymentReference } = request
  const isPaying = connected !== undefined && chosen !== undefined
  if (!isPayable(state)) return <Settled {...{ request, state, hashes }} />
  return (
    <>
      {connected === undefined && <ConnectScreen confirm={confirm} onConnected={setConnected} />}
      {connected !== undefined && chosen === undefined && (
        <RoutesScreen
          {...{ checkout, paymentReference, connected }}
          onChoose={setChosen}
          onOther={() => setConnected(undefined)}
        />
      )}
      {isPaying && (
        <PayingScreen
          {...{ checkout, paymentReference, connected }}
          route={chosen}
          onBack={() => setChosen(undefined)}
          onSent={setHashes}
        />
      )}
      {asked !== undefined && <ConfirmDialog asked={asked} />}
    </>
  )
}

const tones: Partial<Record<RequestState, string>> = {
  PENDING: 'busy',
  PAID: 'good',
  OVERPAID: 'good',
  EXPIRED: 'bad',
  CANCELLED: 'bad',
}

interface SettledProps extends Pick<StepsProps, 'request' | 'state'> {
  /** Of the transactions that this page sent. */
  readonly hashes: readonly string[]
}

function Settled({ request, state, hashes }: SettledProps) {
  const { title, says } = payTexts.states[state]
  return (
    <Screen title={title} tone={tones[state] ?? ''}>
      <p role="status">
        {says} {state === 'OVERPAID' && <Money value={request.overpaidAmount} currency={request.invoiceCurrency} />}
      </p>
      {hashes.length > 0 && (
        <p class="small quiet">
          {payTexts.transaction} <Address value={hashes.at(-1) as string} />
        </p>
      )}
      {state === 'PENDING' && <progress aria-label={payTexts.steps.final} />}
    </Screen>
  )
}

/** The time to the second, for what expires while somebody looks. */
function useNow(): Date {
  const [now, setNow] = useState(() => new Date())
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), 1_000)
    return () => clearInterval(timer)
  }, [])
  return now
}
