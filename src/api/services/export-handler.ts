import type { ServiceImpl } from '@connectrpc/connect'
import type { PaymentSearchService } from '../../../gen/payments/v1/payment_search_service_pb.js'
import type { Payment } from '../../domain/payment.ts'
import type { ExportedPayment } from '../../search/export/export-payments.ts'
import type { PaymentReads } from '../../search/payment-reads.ts'
import { accountOf } from '../calls/call-context.ts'
import { filterInputOf } from './payment-filter-input.ts'
import { createPaymentToProto, type PaymentToProto } from './payment-to-proto.ts'

/** Answers ExportPayments. */
export function createExportHandlers(
  calls: Pick<PaymentReads, 'readExport'>,
  toProto: PaymentToProto = createPaymentToProto(),
) {
  return {
    async *exportPayments(request, context) {
      const input = { ...filterInputOf(request), after: request.after }
      for await (const page of calls.readExport(accountOf(context), input, context.signal)) {
        for (const batch of batchesOf(page)) yield new ExportAnswer(batch, toProto)
      }
    },
  } satisfies Pick<ServiceImpl<typeof PaymentSearchService>, 'exportPayments'>
}

/**
 * An answer of an export. It holds the payments as they are, for the files of plain HTTP, and makes the fields of the message only when
 * a message is sent. A class because of its getter, for the same reason as Call in calls/call.ts.
 */
class ExportAnswer {
  readonly batch: readonly ExportedPayment[]
  readonly toProto: PaymentToProto

  constructor(batch: readonly ExportedPayment[], toProto: PaymentToProto) {
    this.batch = batch
    this.toProto = toProto
  }

  get payments() {
    return this.batch.map(this.toProto)
  }
}

/** The payments of an answer of ExportPayments, as the handler gave it. */
export function paymentsOf(answer: object): readonly ExportedPayment[] {
  return (answer as ExportAnswer).batch
}

/** The number of payments in such an answer. */
export function countExported(answer: object): number {
  return paymentsOf(answer).length
}

/**
 * The most payments of a message, about 30 KB: larger texts are garbage-collected late. Clients of gRPC accept messages of 4 MB by default.
 */
const MAX_PAYMENTS = 20
const MAX_ENTRIES = 200

/** Splits a page into messages, by the number of payments and of the entries in their lists, which may be many. */
function* batchesOf(page: readonly ExportedPayment[]): Generator<readonly ExportedPayment[]> {
  let batch: ExportedPayment[] = []
  let entries = 0
  for (const payment of page) {
    const added = entriesOf(payment)
    if (batch.length === MAX_PAYMENTS || (batch.length > 0 && entries + added > MAX_ENTRIES)) {
      yield batch
      batch = []
      entries = 0
    }
    batch.push(payment)
    entries += added
  }
  if (batch.length > 0) yield batch
}

function entriesOf({ fees, exchangeRates, refunds, statusHistory }: Payment): number {
  return fees.length + exchangeRates.length + refunds.length + statusHistory.length
}
