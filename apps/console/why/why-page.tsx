import { useMutation, useQuery } from '@tanstack/react-query'
import { PaymentRequest_Status, type UnavailableRoute, WaybillCallError } from '@waybill/client'
import { useEffect, useState } from 'react'
import { sentence } from '../../shared/sentence.ts'
import { stateTexts, whyTexts } from '../../shared/texts.ts'
import { Button, Form, TextField } from '../parts/fields.tsx'
import { Link } from '../parts/link.tsx'
import { navigate, searchOf, useLocation } from '../parts/location.ts'
import { ErrorNotice, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { useSession, useWaybill } from '../parts/signed-in.tsx'
import { findPaymentReference } from '../requests/find-request.ts'
import { AnswerHead } from './answer-head.tsx'
import { RouteList } from './route-list.tsx'
import { byUse, sayMoney, sayVerdict } from './say-verdict.ts'
import { type Question, type RoutesState, useRoutes } from './stream-routes.ts'

export function WhyPage() {
  const { query } = useLocation()
  const question = questionOf(query)
  const routes = useRoutes(question)
  const violations = violationsOf(routes.error)
  return (
    <Page title={whyTexts.title}>
      <div className="stack gap-5 why">
        <p className="quiet why-lead">{whyTexts.lead}</p>
        <QuestionForm
          key={`${query.get('request')} ${query.get('wallet')}`}
          reference={query.get('request') ?? ''}
          wallet={query.get('wallet') ?? ''}
          wrong={violations}
          onAsk={(request, wallet) => {
            const to = `/why${searchOf(new URLSearchParams({ request, wallet }))}`
            if (to === `/why${searchOf(query)}`) routes.askAgain()
            else navigate(to)
          }}
        />
        {question !== undefined && <Narrowed question={question} />}
        {question === undefined && <Examples />}
        {routes.error !== undefined && Object.keys(violations).length === 0 && (
          <ErrorNotice error={routes.error} onRetry={routes.askAgain} />
        )}
        {question !== undefined && <Answer question={question} state={routes} onAgain={routes.askAgain} />}
      </div>
    </Page>
  )
}

/** What the link asks; nothing until it names both. */
function questionOf(query: URLSearchParams): Question | undefined {
  const paymentReference = query.get('request')
  const wallet = query.get('wallet')
  if (paymentReference === null || wallet === null) return undefined
  return { paymentReference, wallet, chains: query.getAll('chains'), tokens: query.getAll('tokens') }
}

/** What is wrong with a field, by the field. */
function violationsOf(error: Error | undefined): Readonly<Record<string, string>> {
  if (!(error instanceof WaybillCallError)) return {}
  if (error.reason === 'REQUEST_NOT_FOUND') return { paymentReference: sentence(error.message) }
  const known = error.fieldViolations.filter(({ field }) => field === 'paymentReference' || field === 'wallet')
  return Object.fromEntries(
    known.map(({ field, description }) => [field, sentence(description.replace(`${field}: `, ''))]),
  )
}

/** Says that the link asks for a part alone, and leads to the whole. */
function Narrowed({ question: { paymentReference, wallet, chains, tokens } }: { question: Question }) {
  if (chains.length + tokens.length === 0) return null
  const whole = new URLSearchParams({ request: paymentReference, wallet })
  return (
    <p>
      {whyTexts.onlyFor} <strong>{[...tokens, ...chains].join(', ')}</strong>.{' '}
      <Link to={`/why${searchOf(whole)}`}>{whyTexts.askForAll}</Link>
    </p>
  )
}

interface AnswerProps {
  readonly question: Question
  readonly state: RoutesState
  readonly onAgain: () => void
}

function Answer({ question, state, onAgain }: AnswerProps) {
  const { answer, isAsking, error } = state
  const isBroken = error !== undefined && answer === undefined
  const routes = answer?.routes ?? state.routes
  const unavailable = answer?.unavailable ?? (isBroken ? state.unavailable : [])
  if (isBroken && routes.length + unavailable.length === 0) return null
  return (
    <>
      <Spoken state={state} />
      <AnswerHead question={question} state={state} onAgain={onAgain} />
      {routes.length > 0 && <RouteList routes={routes} isComplete={answer !== undefined} />}
      {routes.length === 0 && isAsking && answer === undefined && <Waiting lines={6} />}
      {unavailable.length > 0 && <MissingList question={question} unavailable={unavailable} />}
    </>
  )
}

/** Tells those who listen the sentence when it is known, not each route as it comes. */
function Spoken({ state: { answer, isAsking } }: { state: RoutesState }) {
  const [text, setText] = useState('')
  useEffect(() => {
    if (isAsking) setText(whyTexts.asking)
    else if (answer !== undefined) {
      const { title, says } = sayVerdict(answer)
      setText(`${sentence(title)} ${says}`)
    }
  }, [answer, isAsking])
  return (
    <p className="unseen" role="status">
      {text}
    </p>
  )
}

/** What the wallets of the demo say fits its oldest request in this currency. */
const CURRENCY = 'USDC-ETHEREUM'

/** In a demo: each of its wallets with an open request, to be tried with a click. */
function Examples() {
  const wallets = useDemoWallets()
  const requests = useOpenRequests()
  const request = requests.findLast(({ currency }) => currency === CURRENCY) ?? requests[0]
  if (request === undefined || wallets.length === 0) return null
  return (
    <section aria-labelledby="examples" className="stack gap-3">
      <h2 id="examples">{whyTexts.examples(request.money)}</h2>
      <ul className="why-examples">
        {wallets.map(({ value, name, says }) => (
          <li key={value}>
            <Link to={`/why${searchOf(new URLSearchParams({ request: request.value, wallet: value }))}`}>{name}</Link>
            <span>{says}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

interface MissingListProps {
  readonly question: Question
  readonly unavailable: readonly UnavailableRoute[]
}

/** Every way that is none, by chain, with what would change that. */
function MissingList({ question, unavailable }: MissingListProps) {
  const byChain = Map.groupBy(unavailable, ({ chain }) => chain ?? whyTexts.missing.elsewhere)
  return (
    <section aria-labelledby="missing" className="stack gap-3">
      <h2 id="missing">{whyTexts.missing.title}</h2>
      {[...byChain].map(([chain, entries]) => (
        <section key={chain} className="why-chain" aria-label={chain}>
          <header>
            <h3>{chain}</h3>
            <span className="quiet small">{whyTexts.missing.count(entries.length)}</span>
          </header>
          <ul>
            {byUse(entries).map((entry) => (
              <Missing key={`${entry.token} ${entry.provider} ${entry.reason}`} entry={entry} question={question} />
            ))}
          </ul>
        </section>
      ))}
    </section>
  )
}

function Missing({ entry, question }: { entry: UnavailableRoute; question: Question }) {
  const { missing } = whyTexts
  const { chain, token, provider, message, remedy, reason } = entry
  return (
    <li>
      <div>
        <strong>{token ?? missing.whole}</strong>
        {provider !== undefined && <span className="quiet small line">{missing.through(provider)}</span>}
      </div>
      <p>
        {sentence(message)} <span className="quiet why-reason">{reason}</span>
      </p>
      <p>
        {reason === 'CROSSCHAIN_NOT_ASKED' && token !== undefined && chain !== undefined ? (
          <Link to={`/why${searchOf(narrowed(question, chain, token))}`}>
            {missing.askFor(whyTexts.on(token, chain))}
          </Link>
        ) : (
          sentence(remedy)
        )}
      </p>
    </li>
  )
}

function narrowed({ paymentReference, wallet }: Question, chain: string, token: string): URLSearchParams {
  return new URLSearchParams({ request: paymentReference, wallet, tokens: token, chains: chain })
}

interface QuestionFormProps {
  readonly reference: string
  readonly wallet: string
  /** What the service finds wrong, by field. */
  readonly wrong: Readonly<Record<string, string>>
  /** @param request - its payment reference, empty where none was typed */
  readonly onAsk: (request: string, wallet: string) => void
}

function QuestionForm({ reference, wallet, wrong, onAsk }: QuestionFormProps) {
  const [typed, setTyped] = useState({ reference, wallet })
  const requests = useOpenRequests()
  const wallets = useDemoWallets()
  const waybill = useWaybill()
  const find = useMutation({
    mutationFn: (text: string) => findPaymentReference(waybill, text),
    onSuccess: (request) => request !== undefined && onAsk(request, typed.wallet.trim()),
  })
  const isUnknown = find.isSuccess && find.data === undefined
  const wrongReference = isUnknown ? whyTexts.noRequest(find.variables) : wrong.paymentReference
  const send = () => {
    const text = typed.reference.trim()
    if (text === '') onAsk(text, typed.wallet.trim())
    else find.mutate(text)
  }
  return (
    <Form className="why-form" noValidate onSend={send}>
      {find.error !== null && <ErrorNotice error={find.error} />}
      <TextField
        label={whyTexts.reference}
        help={wrongReference === undefined ? whyTexts.referenceHelp : undefined}
        isMono
        autoCapitalize="off"
        value={typed.reference}
        wrong={wrongReference}
        suggestions={requests}
        onType={(value) => setTyped({ ...typed, reference: value })}
      />
      <TextField
        label={whyTexts.wallet}
        help={wrong.wallet === undefined ? whyTexts.walletHelp : undefined}
        isMono
        autoCapitalize="off"
        value={typed.wallet}
        wrong={wrong.wallet}
        suggestions={wallets}
        onType={(value) => setTyped({ ...typed, wallet: value })}
      />
      <Button text={whyTexts.ask} kind="main" type="submit" />
    </Form>
  )
}

const none: readonly never[] = []

/** Requests that still take a payment, newest first. None where the key may not list them. */
function useOpenRequests() {
  const { waybill } = useSession()
  const { data } = useQuery({
    queryKey: ['why', 'requests'],
    queryFn: async ({ signal }) => {
      const status = [PaymentRequest_Status.OPEN, PaymentRequest_Status.PARTIALLY_PAID]
      const { requests } = await waybill.listPaymentRequests({ status, limit: 50 }, { signal })
      return requests.map(({ paymentReference, outstandingAmount, invoiceCurrency, status, reference }) => {
        const money = sayMoney(outstandingAmount, invoiceCurrency)
        const state = stateTexts.request[PaymentRequest_Status[status] as keyof typeof stateTexts.request]
        const says = [money, state, reference].filter((part) => part !== undefined).join(' · ')
        return { value: paymentReference, says, money, currency: invoiceCurrency }
      })
    },
    staleTime: 30_000,
  })
  return data ?? none
}

/** The wallets of a demo. None elsewhere. */
function useDemoWallets() {
  const { isDemo } = useSession()
  const { data } = useQuery({
    queryKey: ['why', 'wallets'],
    queryFn: async ({ signal }) => {
      const answer = await fetch('/demo/wallets', { signal })
      if (!answer.ok) return none
      const wallets = (await answer.json()) as readonly { name: string; address: string; says: string }[]
      return wallets.map(({ name, address, says }) => ({ value: address, name, says }))
    },
    enabled: isDemo,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return data ?? none
}
