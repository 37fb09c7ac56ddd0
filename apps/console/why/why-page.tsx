import { useMutation, useQuery } from '@tanstack/react-query'
import { PaymentRequest_Status, type UnavailableRoute, WaybillCallError } from '@waybill/client'
import { sentence } from '../../shared/sentence.ts'
import { stateTexts, whyTexts } from '../../shared/texts.ts'
import { Button, Form, TextField, textOf } from '../parts/fields.tsx'
import { Link } from '../parts/link.tsx'
import { navigate, placeOf, searchOf, useLocation } from '../parts/location.ts'
import { ErrorNotice, Failure, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { useSession, useWaybill } from '../parts/signed-in.tsx'
import { findPaymentReference } from '../requests/find-request.ts'
import { AnswerHead, type Question } from './answer-head.tsx'
import { RouteList } from './route-list.tsx'
import { byUse, sayMoney } from './say-verdict.ts'

export function WhyPage() {
  const { query } = useLocation()
  const waybill = useWaybill()
  const question = questionOf(query)
  const routes = useQuery({
    queryKey: ['routes', question],
    queryFn: ({ signal }) => waybill.getPaymentRoutes(question ?? {}, { signal }),
    enabled: question !== undefined,
    // Quotes hold for a minute, and cost calls of nodes.
    gcTime: 0,
    refetchOnWindowFocus: false,
  })
  const { data, isFetching, refetch } = routes
  const violations = violationsOf(routes.error)
  return (
    <Page title={whyTexts.title}>
      <div className="stack gap-5 why">
        <p className="quiet narrow">{whyTexts.lead}</p>
        <QuestionForm
          key={`${query.get('request')} ${query.get('wallet')}`}
          query={query}
          wrong={violations}
          onAsk={(request, wallet) => {
            // Also what is empty is asked, for the service to say that it is missing.
            const to = `/why${searchOf(new URLSearchParams({ request, wallet }))}`
            if (to === `/why${searchOf(query)}`) void refetch()
            else navigate(to)
          }}
        />
        {question !== undefined && <Narrowed question={question} />}
        {Object.keys(violations).length === 0 && <Failure query={routes} />}
        {question !== undefined && (data !== undefined || isFetching) && (
          <>
            <AnswerHead
              question={question}
              answer={data}
              answeredAt={new Date(routes.dataUpdatedAt)}
              isAsking={isFetching}
              onAgain={() => void refetch()}
            />
            {data === undefined && <Waiting lines={6} />}
            {data !== undefined && data.routes.length > 0 && <RouteList routes={data.routes} />}
            {data !== undefined && data.unavailable.length > 0 && (
              <MissingList question={question} unavailable={data.unavailable} />
            )}
          </>
        )}
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
function violationsOf(error: Error | null): Readonly<Record<string, string>> {
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
  return (
    <p>
      {whyTexts.onlyFor} <strong>{[...tokens, ...chains].join(', ')}</strong>.{' '}
      <Link to={placeOf('/why', { request: paymentReference, wallet })}>{whyTexts.askForAll}</Link>
    </p>
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
        <section key={chain} className="why-chain card stack gap-2" aria-label={chain}>
          <header className="row">
            <h3>{chain}</h3>
            <span className="quiet small">{whyTexts.missing.count(entries.length)}</span>
          </header>
          <ul className="stack gap-2">
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
  const { paymentReference, wallet } = question
  const { chain, token, provider, message, remedy, reason } = entry
  return (
    <li className="columns">
      <div>
        <strong>{token ?? missing.whole}</strong>
        {provider !== undefined && <span className="quiet small line">{missing.through(provider)}</span>}
      </div>
      <p>
        {sentence(message)} <span className="quiet mono why-reason">{reason}</span>
      </p>
      <p>
        {reason === 'CROSSCHAIN_NOT_ASKED' && token !== undefined && chain !== undefined ? (
          <Link to={placeOf('/why', { request: paymentReference, wallet, tokens: token, chains: chain })}>
            {missing.askFor(whyTexts.on(token, chain))}
          </Link>
        ) : (
          sentence(remedy)
        )}
      </p>
    </li>
  )
}

interface QuestionFormProps {
  readonly query: URLSearchParams
  /** What the service finds wrong, by field. */
  readonly wrong: Readonly<Record<string, string>>
  /** @param request - its payment reference, empty where none was typed */
  readonly onAsk: (request: string, wallet: string) => void
}

function QuestionForm({ query, wrong, onAsk }: QuestionFormProps) {
  const requests = useOpenRequests()
  const wallets = useDemoWallets()
  const waybill = useWaybill()
  const find = useMutation({
    mutationFn: ({ text }: { text: string; wallet: string }) => findPaymentReference(waybill, text),
    onSuccess: (request, { wallet }) => request !== undefined && onAsk(request, wallet),
  })
  const isUnknown = find.isSuccess && find.data === undefined
  const wrongReference = isUnknown ? whyTexts.noRequest(find.variables.text) : wrong.paymentReference
  const send = (typed: FormData) => {
    const [text, wallet] = [textOf(typed, 'request'), textOf(typed, 'wallet')]
    if (text === '') onAsk(text, wallet)
    else find.mutate({ text, wallet })
  }
  const common = { isMono: true, autoCapitalize: 'off' }
  return (
    <Form className="columns why-form" onSend={send}>
      {find.error !== null && <ErrorNotice error={find.error} />}
      <TextField
        {...common}
        name="request"
        label={whyTexts.reference}
        help={wrongReference === undefined ? whyTexts.referenceHelp : undefined}
        defaultValue={query.get('request') ?? ''}
        wrong={wrongReference}
        suggestions={requests}
      />
      <TextField
        {...common}
        name="wallet"
        label={whyTexts.wallet}
        help={wrong.wallet === undefined ? whyTexts.walletHelp : undefined}
        defaultValue={query.get('wallet') ?? ''}
        wrong={wrong.wallet}
        suggestions={wallets}
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
        const state = stateTexts.request[PaymentRequest_Status[status] as keyof typeof stateTexts.request]
        const says = [sayMoney(outstandingAmount, invoiceCurrency), state, reference]
        return { value: paymentReference, says: says.filter((part) => part !== undefined).join(' · ') }
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
      return wallets.map(({ name, address, says }) => ({ value: address, says: `${name}: ${says}` }))
    },
    enabled: isDemo,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return data ?? none
}
