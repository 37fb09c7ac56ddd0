import type { GetPaymentRoutesResponse } from '@waybill/client'
import { formatUtc, toDate } from '../../shared/format-time.ts'
import { sentence } from '../../shared/sentence.ts'
import { whyTexts } from '../../shared/texts.ts'
import { Button } from '../parts/fields.tsx'
import { LinkButton } from '../parts/link.tsx'
import { CopyButton, Time } from '../parts/shown-values.tsx'
import { isClosing, sayToCustomer, sayVerdict } from './say-verdict.ts'

/** What is asked; the link carries it. */
export interface Question {
  readonly paymentReference: string
  readonly wallet: string
  readonly chains: string[]
  readonly tokens: string[]
}

interface AnswerHeadProps {
  readonly question: Question
  /** The last answer to this question. It stays while the question is asked again. */
  readonly answer: GetPaymentRoutesResponse | undefined
  readonly answeredAt: Date
  readonly isAsking: boolean
  readonly onAgain: () => void
}

/** The answer in one sentence. It keeps its height while it is not known, so that nothing below it jumps. */
export function AnswerHead({ question, answer, answeredAt, isAsking, onAgain }: AnswerHeadProps) {
  const { paymentReference: reference, wallet } = question
  const verdict = answer === undefined ? undefined : sayVerdict(answer)
  const endsAt = endOf(answer)
  const others = answer?.warnings.filter((warning) => !isClosing(warning)) ?? []
  return (
    <section className={`notice verdict tinted stack why-verdict ${verdict?.tone ?? ''}`} aria-busy={isAsking}>
      <div className="why-sentence stack gap-2">
        <div role="status">
          <h2>{verdict?.title ?? whyTexts.asking}</h2>
        </div>
        <p>{verdict?.says}</p>
        {others.map(({ reason, message }) => (
          <p key={reason} className="warning">
            {sentence(message)}
          </p>
        ))}
      </div>
      <div className="row apart">
        <div className="row">
          <Button
            text={isAsking && answer !== undefined ? whyTexts.askingAgain : whyTexts.again}
            onClick={onAgain}
            disabled={isAsking}
          />
          {answer !== undefined && (
            <CopyButton
              text={whyTexts.copy}
              value={sayToCustomer(answer, { reference, wallet, answeredAt: formatUtc(answeredAt) })}
            />
          )}
          <LinkButton to={`/requests/${encodeURIComponent(reference)}`} text={whyTexts.openRequest} kind="plain" />
        </div>
        <p className="small">
          {endsAt === undefined ? (
            '\u00a0'
          ) : (
            <>
              {whyTexts.until} <Time at={new Date(endsAt)} />
            </>
          )}
        </p>
      </div>
    </section>
  )
}

/** When the first of the quotes expires. */
function endOf(answer: GetPaymentRoutesResponse | undefined): number | undefined {
  const ends = answer?.routes.flatMap(({ expiresAt }) => (expiresAt === undefined ? [] : [toDate(expiresAt).getTime()]))
  return ends === undefined || ends.length === 0 ? undefined : Math.min(...ends)
}
