import { FeeLine_Stage as FeeStage, FeeLine_Type as FeeType, type Payment, Payment_Type } from '@waybill/client'
import { feeTexts, paymentsTexts, paymentTexts } from '../../shared/texts.ts'
import { Card, Facts, Table } from '../parts/blocks.tsx'
import { Amount, Copyable, Time, Unknown, Usd } from '../parts/shown-values.tsx'

/** Whose money it was, who received it, who sent the transaction. */
export function Who({ payment }: { payment: Payment }) {
  const { title, initiator, same } = paymentTexts.who
  const { payer, payee } = paymentsTexts.columns
  const { links } = payment
  const isSame = payment.initiator !== undefined && payment.initiator === payment.payer
  return (
    <Card id="who" title={title}>
      <Facts
        facts={[
          [payer, <Copyable value={payment.payer} link={links?.payer} whole />],
          [payee, <Copyable value={payment.payee} link={links?.payee} whole />],
          [initiator, isSame ? <span className="quiet">{same}</span> : <Copyable value={payment.initiator} whole />],
        ]}
      />
    </Card>
  )
}

/** Amounts, fees, gas, rates and refunds. */
export function MoneyDetails({ payment }: { payment: Payment }) {
  return (
    <>
      <div className="columns">
        <Amounts payment={payment} />
        <Gas payment={payment} />
      </div>
      <Refunds payment={payment} />
      <Fees payment={payment} />
      <Rates payment={payment} />
    </>
  )
}

function Amounts({ payment }: { payment: Payment }) {
  const { title, received, usd, counts, refunded } = paymentTexts.amounts
  return (
    <Card id="amounts" title={title}>
      <Facts
        facts={[
          [received, <Amount value={payment.amount} currency={payment.currency} whole />],
          [usd, <Usd value={payment.amountInUsd} />],
          [counts, <Amount value={payment.invoiceAmount} currency={payment.invoiceCurrency} whole />],
          [refunded, <Amount value={payment.refundedAmount} currency={payment.currency} whole />],
        ]}
      />
    </Card>
  )
}

function Refunds({ payment: { refunds } }: { payment: Payment }) {
  const { title, columns } = paymentTexts.refunds
  if (refunds.length === 0) return undefined
  const rows = refunds.map((refund) => [
    <Time at={refund.timestamp} />,
    <Amount value={refund.amount} currency={refund.currency} whole />,
    refund.network,
    <Copyable value={refund.txHash} />,
  ])
  return (
    <Card id="refunds" title={title}>
      <Table label={title} columns={columns} rows={rows} numbers={[1, 1]} />
    </Card>
  )
}

function Fees({ payment: { fees } }: { payment: Payment }) {
  const { title, none, columns } = paymentTexts.fees
  const { kinds, stages } = feeTexts
  const rows = fees.map((fee) => [
    kinds[FeeType[fee.type] as keyof typeof kinds],
    stages[FeeStage[fee.stage] as keyof typeof stages],
    <Amount value={fee.amount} currency={fee.currency} whole />,
    <Usd value={fee.amountInUsd} />,
    fee.provider ?? <Unknown />,
    <Copyable value={fee.receiverAddress} />,
  ])
  return (
    <Card id="fees" title={title}>
      {rows.length === 0 ? (
        <p className="quiet">{none}</p>
      ) : (
        <Table label={title} columns={columns} rows={rows} numbers={[2, 3]} />
      )}
    </Card>
  )
}

function Gas({ payment: { gas } }: { payment: Payment }) {
  const { title, none, cost, usd, used, price } = paymentTexts.gas
  return (
    <Card id="gas" title={title}>
      {gas === undefined ? (
        <p className="quiet">{none}</p>
      ) : (
        <Facts
          facts={[
            [cost, <Amount value={gas.amount} currency={gas.currency} whole />],
            [usd, <Usd value={gas.amountInUsd} />],
            [used, gas.used?.toLocaleString() ?? <Unknown />],
            [price, <Amount value={gas.price} currency={gas.currency} whole />],
          ]}
        />
      )}
    </Card>
  )
}

function Rates({ payment: { exchangeRates } }: { payment: Payment }) {
  const { title, none, columns, one, sources } = paymentTexts.rates
  const rows = exchangeRates.map((rate) => [
    one(rate.from),
    <Amount value={rate.rate} currency={rate.to} whole />,
    (sources as Readonly<Record<string, string>>)[rate.source] ?? rate.source,
    <Time at={rate.at} />,
  ])
  return (
    <Card id="rates" title={title}>
      {rows.length === 0 ? (
        <p className="quiet">{none}</p>
      ) : (
        <Table label={title} columns={columns} rows={rows} numbers={[1, 1]} />
      )}
    </Card>
  )
}

/** What the payment is called elsewhere. */
export function Identifiers({ payment }: { payment: Payment }) {
  const { types } = paymentsTexts
  const { title, id, type, reference, token, native, updated } = paymentTexts.identifiers
  const isNative = isNativeCoin(payment)
  return (
    <Card id="identifiers" title={title}>
      <Facts
        facts={[
          [reference, <Copyable value={payment.reference} whole />],
          ...Object.entries(payment.metadata).map(([key, value]) => [key, <Copyable value={value} whole />] as const),
          [type, payment.type === undefined ? <Unknown /> : types[Payment_Type[payment.type] as keyof typeof types]],
          [token, isNative ? <span className="quiet">{native}</span> : <Copyable value={payment.tokenAddress} whole />],
          [id, <Copyable value={payment.id} whole />],
          [updated, <Time at={payment.updatedAt} />],
        ]}
      />
    </Card>
  )
}

/**
 * Whether a payment is certainly one of the chain's own coin. Its gas is paid in that coin. That `tokenAddress` is absent proves nothing: an
 * import may leave it out.
 */
export function isNativeCoin({
  tokenAddress,
  currency,
  gas,
}: Pick<Payment, 'tokenAddress' | 'currency' | 'gas'>): boolean {
  return tokenAddress === undefined && gas?.currency === currency
}
