import { useEffect, useMemo, useState } from 'react'
import { formatUtc, toDate } from '../../shared/format-time.ts'
import { sentence } from '../../shared/sentence.ts'
import { whyTexts } from '../../shared/texts.ts'
import { Button } from '../parts/fields.tsx'
import { LinkButton } from '../parts/link.tsx'
import { Time, useCopy } from '../parts/shown-values.tsx'
import { isClosing, sayToCustomer, sayVerdict } from './say-verdict.ts'
import type { Question, RoutesState } from './stream-routes.ts'

interface AnswerHeadProps {
  readonly question: Question
  readonly state: RoutesState
  readonly onAgain: () => void
}

/** The answer in one sentence. It keeps its height while it is not known, so that nothing below it jumps. */
export function AnswerHead({ question, state, onAgain }: AnswerHeadProps) {
  const { answer, isAsking, routes } = state
  const verdict = answer === undefined ? undefined : sayVerdict(answer)
  const endsAt = endOf(answer)
  const isOver = useIsOver(endsAt)
  const others = answer?.warnings.filter((warning) => !isClosing(warning)) ?? []
  return (
    <section className={`notice verdict why-verdict ${isOver ? 'stale' : (verdict?.tone ?? '')}`} aria-busy={isAsking}>
      <div className="why-sentence stack gap-2">
        <h2>{verdict?.title ?? (isAsking ? whyTexts.asking : whyTexts.failed)}</h2>
        <p>{verdict?.says ?? whyTexts.found(routes.length)}</p>
        {others.map(({ reason, message }) => (
          <p key={reason} className="warning">
            {sentence(message)}
          </p>
        ))}
      </div>
      <div className="why-after row">
        <Validity endsAt={endsAt} isOver={isOver} />
        <div className="row">
          <Button
            text={isAsking && answer !== undefined ? whyTexts.askingAgain : whyTexts.again}
            onClick={onAgain}
            disabled={isAsking}
          />
          <CopyForCustomer question={question} state={state} />
          <LinkButton
            to={`/requests/${encodeURIComponent(question.paymentReference)}`}
            text={whyTexts.openRequest}
            kind="plain"
          />
        </div>
      </div>
    </section>
  )
}

/** When the first of the quotes expires. */
function endOf(answer: RoutesState['answer']): number | undefined {
  const ends = answer?.routes.flatMap(({ expiresAt }) => (expiresAt === undefined ? [] : [toDate(expiresAt).getTime()]))
  return ends === undefined || ends.length === 0 ? undefined : Math.min(...ends)
}

/** Until when the quotes hold, and that they no longer do. */
function Validity({ endsAt, isOver }: { endsAt: number | undefined; isOver: boolean }) {
  if (endsAt === undefined) return <p className="small">&nbsp;</p>
  return (
    <p className={isOver ? 'small why-stale' : 'small'}>
      {!isOver && (
        <>
          {whyTexts.until} <Time at={new Date(endsAt)} />
        </>
      )}
      <span role="status">{isOver ? whyTexts.expired : ''}</span>
    </p>
  )
}

function useIsOver(endsAt: number | undefined): boolean {
  const [, setRound] = useState(0)
  useEffect(() => {
    if (endsAt === undefined) return undefined
    const timer = setTimeout(() => setRound((before) => before + 1), Math.max(0, endsAt - Date.now()) + 50)
    return () => clearTimeout(timer)
  }, [endsAt])
  return endsAt !== undefined && Date.now() >= endsAt
}

function CopyForCustomer({ question, state: { answer, answeredAt } }: Pick<AnswerHeadProps, 'question' | 'state'>) {
  const { copy, copied } = useCopy(whyTexts.copied)
  const [isByHand, setByHand] = useState(false)
  const text = useMemo(() => {
    if (answer === undefined || answeredAt === undefined) return ''
    const { paymentReference: reference, wallet } = question
    return sayToCustomer(answer, { reference, wallet, answeredAt: formatUtc(answeredAt) })
  }, [answer, answeredAt, question])
  return (
    <>
      <Button
        text={copied === text ? `✓ ${whyTexts.copied}` : whyTexts.copy}
        disabled={text === ''}
        onClick={() => void copy(text).catch(() => setByHand(true))}
      />
      {isByHand && copied === undefined && (
        <label className="field why-whole">
          {whyTexts.copyByHand}
          <textarea className="input" readOnly rows={8} value={text} onFocus={(event) => event.target.select()} />
        </label>
      )}
    </>
  )
}
