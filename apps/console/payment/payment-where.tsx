import type { Payment } from '@waybill/client'
import { paymentTexts } from '../../shared/texts.ts'
import { Card, type Fact, Facts } from '../parts/blocks.tsx'
import { Copyable, Time, Unknown } from '../parts/shown-values.tsx'

/** Where the money moved: one chain, or two side by side where a bridge carried it. */
export function Where({ payment }: { payment: Payment }) {
  const { title, source, destination, chain } = paymentTexts.where
  const isBridged = payment.sourceNetwork !== undefined && payment.sourceNetwork !== payment.network
  const unknownSource: Fact = payment.sourceNetwork === undefined ? [source, <Unknown />] : undefined
  return (
    <Card id="where" title={title}>
      {isBridged ? (
        <div className="bridge stack">
          <Side title={source} facts={sourceFacts(payment)} />
          <span className="bridge-arrow" aria-hidden="true">
            →
          </span>
          <Side title={destination} facts={destinationFacts(payment)} />
        </div>
      ) : (
        <Facts label={chain} facts={[...destinationFacts(payment), unknownSource]} />
      )}
    </Card>
  )
}

function Side({ title, facts }: { title: string; facts: readonly Fact[] }) {
  return (
    <div className="stack gap-2">
      <h3>{title}</h3>
      <Facts facts={facts} />
    </div>
  )
}

function sourceFacts({ sourceNetwork, sourceTxHash, payer, links }: Payment): readonly Fact[] {
  const texts = paymentTexts.where
  return [
    [texts.network, sourceNetwork ?? <Unknown />],
    [texts.transaction, <Copyable value={sourceTxHash} link={links?.sourceTransaction} />],
    [texts.payer, <Copyable value={payer} link={links?.payer} />],
  ]
}

function destinationFacts(payment: Payment): readonly Fact[] {
  const texts = paymentTexts.where
  const { network, chainId, txHash, links, blockNumber, eventIndex, timestamp } = payment
  const where = (
    <>
      {network} {chainId !== undefined && <span className="quiet">{chainId}</span>}
    </>
  )
  return [
    [texts.network, where],
    [texts.transaction, <Copyable value={txHash} link={links?.transaction} />],
    [texts.block, blockNumber?.toString() ?? <Unknown />],
    [texts.time, <Time at={timestamp} />],
    [texts.event, eventIndex ?? <Unknown />],
  ]
}
