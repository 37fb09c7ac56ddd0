import { WaybillCallError } from '@waybill/client'
import { useEffect, useState } from 'react'
import { sentence } from '../../shared/sentence.ts'
import { whyTexts } from '../../shared/texts.ts'
import { Link } from '../parts/link.tsx'
import { navigate, searchOf, useLocation } from '../parts/location.ts'
import { ErrorNotice, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { AnswerHead } from './answer-head.tsx'
import { Examples } from './examples.tsx'
import { MissingList } from './missing-list.tsx'
import { QuestionForm } from './question-form.tsx'
import { RouteList } from './route-list.tsx'
import { sayVerdict } from './say-verdict.ts'
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
          onAsk={(reference, wallet) => {
            const to = `/why${searchOf(new URLSearchParams({ request: reference, wallet }))}`
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
