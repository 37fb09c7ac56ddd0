import type { Payment } from '@waybill/client'
import type { ReactNode } from 'react'
import { paymentTexts } from '../../look/texts.ts'
import { Copyable, Time, Unknown } from '../parts/shown-values.tsx'

/** Where the money moved: one chain, or two side by side where a bridge carried it. */
export function Where({ payment }: { payment: Payment }) {
  const { title, source, destination, chain } = paymentTexts.where
  const isBridged = payment.sourceNetwork !== undefined && payment.sourceNetwork !== payment.network
  return (
    <section className="card" aria-labelledby="where">
      <h2 id="where">{title}</h2>
      {isBridged ? (
        <div className="bridge stack">
          <Side title={source}>
            <SourceFacts payment={payment} />
          </Side>
          <span className="bridge-arrow" aria-hidden="true">
            →
          </span>
          <Side title={destination}>
            <DestinationFacts payment={payment} />
          </Side>
        </div>
      ) : (
        <dl className="facts" aria-label={chain}>
          <DestinationFacts payment={payment} />
          {payment.sourceNetwork === undefined && (
            <>
              <dt>{source}</dt>
              <dd>
                <Unknown />
              </dd>
            </>
          )}
        </dl>
      )}
    </section>
  )
}

function Side({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="bridge-side">
      <h3>{title}</h3>
      <dl className="facts">{children}</dl>
    </div>
  )
}

function SourceFacts({ payment }: { payment: Payment }) {
  const { network, transaction, payer } = paymentTexts.where
  return (
    <>
      <dt>{network}</dt>
      <dd>{payment.sourceNetwork ?? <Unknown />}</dd>
      <dt>{transaction}</dt>
      <dd>
        <Copyable value={payment.sourceTxHash} link={payment.links?.sourceTransaction} />
      </dd>
      <dt>{payer}</dt>
      <dd>
        <Copyable value={payment.payer} link={payment.links?.payer} />
      </dd>
    </>
  )
}

function DestinationFacts({ payment }: { payment: Payment }) {
  const { network, transaction, block, event, time } = paymentTexts.where
  const { chainId, blockNumber, eventIndex } = payment
  return (
    <>
      <dt>{network}</dt>
      <dd>
        {payment.network} {chainId !== undefined && <span className="quiet">{chainId}</span>}
      </dd>
      <dt>{transaction}</dt>
      <dd>
        <Copyable value={payment.txHash} link={payment.links?.transaction} />
      </dd>
      <dt>{block}</dt>
      <dd className="number">{blockNumber === undefined ? <Unknown /> : blockNumber.toString()}</dd>
      <dt>{time}</dt>
      <dd>
        <Time at={payment.timestamp} />
      </dd>
      <dt>{event}</dt>
      <dd className="number">{eventIndex ?? <Unknown />}</dd>
    </>
  )
}
