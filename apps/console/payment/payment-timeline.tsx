import type { Payment } from '@waybill/client'
import { paymentTexts, stateTexts } from '../../shared/texts.ts'
import { Card } from '../parts/blocks.tsx'
import { Amount, Copyable, Time } from '../parts/shown-values.tsx'
import { type LifeStep, lifeOf, type StatusName, statusNameOf } from './payment-life.ts'

type Mark = 'done' | 'good' | 'warn' | 'bad' | 'next'

const marks: Readonly<Record<StatusName, Mark>> = {
  PENDING: 'done',
  PARTIAL: 'warn',
  CONFIRMED: 'good',
  REFUNDED: 'done',
  FAILED: 'bad',
}

/** What has happened to a payment, and what comes next. */
export function Timeline({ payment, isGone }: { payment: Payment; isGone: boolean }) {
  const { title, gone } = paymentTexts.life
  const isPending = statusNameOf(payment.status) === 'PENDING' && !isGone && payment.superseded !== true
  return (
    <Card id="life" title={title}>
      <ol className="life bullets stack gap-3">
        {lifeOf(payment).map((step, index) => (
          <Step key={index} step={step} isAlone={payment.paymentReference === undefined} />
        ))}
        {isGone && <li className="bad">{gone}</li>}
        {isPending && <NextStep payment={payment} />}
      </ol>
    </Card>
  )
}

/** @param props.isAlone - there is no request of which it could tell */
function Step({ step, isAlone }: { step: LifeStep; isAlone: boolean }) {
  const { block, changes, refunded } = paymentTexts.life
  const mark = step.kind === 'status' ? marks[step.status] : 'done'
  return (
    <li className={mark}>
      {step.kind === 'block' && <span>{block(step.network)}</span>}
      {step.kind === 'status' && (
        <>
          <strong>{stateTexts.payment[step.status]}</strong>{' '}
          <span>{changes[isAlone && step.status === 'CONFIRMED' ? 'alone' : step.status]}</span>
        </>
      )}
      {step.kind === 'refund' && (
        <>
          <span>
            {refunded} <Amount value={step.refund.amount} currency={step.refund.currency} whole />
          </span>{' '}
          <Copyable value={step.refund.txHash} />
        </>
      )}
      <span className="line quiet small">
        <Time at={step.at} />
      </span>
    </li>
  )
}

/** How far a payment is from being final, as far as its chain tells. */
function NextStep({ payment: { confirmations: seen } }: { payment: Payment }) {
  const { next, confirmations } = paymentTexts.life
  return (
    <li className="next">
      <span>{next}</span>
      {seen !== undefined && (
        <span className="confirmations number" role="status">
          {confirmations(seen)}
        </span>
      )}
    </li>
  )
}
