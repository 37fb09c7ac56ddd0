import { FeeLine_Stage as FeeStage, FeeLine_Type as FeeType, type Payment, Payment_Type } from '@waybill/client'
import type { ReactNode } from 'react'
import { isNativeCoin } from '../../look/native-coin.ts'
import { paymentTexts } from '../../look/texts.ts'
import { Amount, Copyable, Time, Unknown, Usd } from '../parts/shown-values.tsx'

/** Whose money it was, who received it, who sent the transaction. */
export function Who({ payment }: { payment: Payment }) {
  const { title, payer, payee, initiator, same } = paymentTexts.who
  const { links } = payment
  const isSame = payment.initiator !== undefined && payment.initiator === payment.payer
  return (
    <Card id="who" title={title}>
      <dl className="facts">
        <dt>{payer}</dt>
        <dd>
          <Copyable value={payment.payer} link={links?.payer} whole />
        </dd>
        <dt>{payee}</dt>
        <dd>
          <Copyable value={payment.payee} link={links?.payee} whole />
        </dd>
        <dt>{initiator}</dt>
        <dd>{isSame ? <span className="quiet">{same}</span> : <Copyable value={payment.initiator} whole />}</dd>
      </dl>
    </Card>
  )
}

/** Amounts, fees, gas, rates and refunds. */
export function MoneyDetails({ payment }: { payment: Payment }) {
  return (
    <>
      <div className="payment-pair stack">
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
  const { amounts } = paymentTexts
  const { invoiceAmount, invoiceCurrency } = payment
  return (
    <Card id="amounts" title={amounts.title}>
      <dl className="facts">
        <dt>{amounts.received}</dt>
        <dd>
          <Amount value={payment.amount} currency={payment.currency} whole />
        </dd>
        <dt>{amounts.usd}</dt>
        <dd>
          <Usd value={payment.amountInUsd} />
        </dd>
        <dt>{amounts.counts}</dt>
        <dd>
          {invoiceAmount === undefined || invoiceCurrency === undefined ? (
            <Unknown />
          ) : (
            <Amount value={invoiceAmount} currency={invoiceCurrency} whole />
          )}
        </dd>
        <dt>{amounts.refunded}</dt>
        <dd>
          <Amount value={payment.refundedAmount} currency={payment.currency} whole />
        </dd>
      </dl>
    </Card>
  )
}

function Refunds({ payment: { refunds } }: { payment: Payment }) {
  const { title, columns } = paymentTexts.refunds
  if (refunds.length === 0) return undefined
  return (
    <Card id="refunds" title={title}>
      <Table label={title} columns={columns}>
        {refunds.map((refund, index) => (
          <tr key={index}>
            <td>
              <Time at={refund.timestamp} />
            </td>
            <td className="right">
              <Amount value={refund.amount} currency={refund.currency} whole />
            </td>
            <td>{refund.network}</td>
            <td>
              <Copyable value={refund.txHash} />
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  )
}

function Fees({ payment: { fees } }: { payment: Payment }) {
  const { title, none, columns, types, stages } = paymentTexts.fees
  return (
    <Card id="fees" title={title}>
      {fees.length === 0 ? (
        <p className="quiet">{none}</p>
      ) : (
        <Table label={title} columns={columns}>
          {fees.map((fee, index) => (
            <tr key={index}>
              <td>{types[FeeType[fee.type] as keyof typeof types]}</td>
              <td>{stages[FeeStage[fee.stage] as keyof typeof stages]}</td>
              <td className="right">
                <Amount value={fee.amount} currency={fee.currency} whole />
              </td>
              <td className="right">
                <Usd value={fee.amountInUsd} />
              </td>
              <td>{fee.provider ?? <Unknown />}</td>
              <td>
                <Copyable value={fee.receiverAddress} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  )
}

function Gas({ payment: { gas } }: { payment: Payment }) {
  const { title, none, cost, usd, used, price } = paymentTexts.gas
  if (gas === undefined)
    return (
      <Card id="gas" title={title}>
        <p className="quiet">{none}</p>
      </Card>
    )
  return (
    <Card id="gas" title={title}>
      <dl className="facts">
        <dt>{cost}</dt>
        <dd>
          <Amount value={gas.amount} currency={gas.currency} whole />
        </dd>
        <dt>{usd}</dt>
        <dd>
          <Usd value={gas.amountInUsd} />
        </dd>
        <dt>{used}</dt>
        <dd className="number">{gas.used === undefined ? <Unknown /> : gas.used.toLocaleString()}</dd>
        <dt>{price}</dt>
        <dd>{gas.price === undefined ? <Unknown /> : <Amount value={gas.price} currency={gas.currency} whole />}</dd>
      </dl>
    </Card>
  )
}

function Rates({ payment: { exchangeRates } }: { payment: Payment }) {
  const { title, none, columns, one, sources } = paymentTexts.rates
  return (
    <Card id="rates" title={title}>
      {exchangeRates.length === 0 ? (
        <p className="quiet">{none}</p>
      ) : (
        <Table label={title} columns={columns}>
          {exchangeRates.map((rate, index) => (
            <tr key={index}>
              <td>{one(rate.from)}</td>
              <td className="right">
                <Amount value={rate.rate} currency={rate.to} whole />
              </td>
              <td>{(sources as Readonly<Record<string, string>>)[rate.source] ?? rate.source}</td>
              <td>
                <Time at={rate.at} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  )
}

/** What the payment is called elsewhere. */
export function Identifiers({ payment }: { payment: Payment }) {
  const { title, id, type, types, reference, token, native, updated } = paymentTexts.identifiers
  return (
    <Card id="identifiers" title={title}>
      <dl className="facts">
        <dt>{reference}</dt>
        <dd>
          <Copyable value={payment.reference} whole />
        </dd>
        <dt>{type}</dt>
        <dd>{payment.type === undefined ? <Unknown /> : types[Payment_Type[payment.type] as keyof typeof types]}</dd>
        <dt>{token}</dt>
        <dd>
          {isNativeCoin(payment) ? (
            <span className="quiet">{native}</span>
          ) : (
            <Copyable value={payment.tokenAddress} whole />
          )}
        </dd>
        <dt>{id}</dt>
        <dd>
          <Copyable value={payment.id} whole />
        </dd>
        <dt>{updated}</dt>
        <dd>
          <Time at={payment.updatedAt} />
        </dd>
      </dl>
    </Card>
  )
}

function Card({ id, title, children }: { id: string; title: string; children: ReactNode }) {
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  )
}

interface TableProps {
  readonly label: string
  /** Columns of numbers stand to the right. */
  readonly columns: readonly { readonly title: string; readonly isRight?: boolean }[]
  readonly children: ReactNode
}

function Table({ label, columns, children }: TableProps) {
  return (
    // A table that is wider than its card is scrolled by keys too.
    <div className="table-scroll" role="group" tabIndex={0} aria-label={label}>
      <table className="table">
        <thead>
          <tr>
            {columns.map(({ title, isRight }) => (
              <th key={title} scope="col" className={isRight === true ? 'right' : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}
