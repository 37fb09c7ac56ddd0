import type { ExportPaymentsResponse } from '../../../gen/payments/v1/payment_export_pb.js'
import type { PaymentSearchService } from '../../../gen/payments/v1/payment_search_service_pb.js'
import type { Account } from '../../domain/account.ts'
import type { Payment } from '../../domain/payment.ts'
import type { ExportInput } from '../../search/export/export-pages.ts'
import { accountOf, type ServiceHandlers } from '../calls/call-context.ts'
import { filterInputOf } from './payment-filter-input.ts'
import { paymentToProto } from './payment-to-proto.ts'

/** Reads the payments of an export, a page at a time; the search room does. */
export type ReadExport = (
  account: Account,
  input: ExportInput,
  signal: AbortSignal,
) => AsyncIterable<readonly Payment[]>

/** Answers ExportPayments. */
export function createExportHandlers(readExport: ReadExport) {
  return {
    async *exportPayments(request, context) {
      const input = { ...filterInputOf(request), after: request.after }
      for await (const page of readExport(accountOf(context), input, context.signal)) {
        for (const batch of batchesOf(page)) yield { payments: batch.map(paymentToProto) }
      }
    },
  } satisfies Pick<ServiceHandlers<typeof PaymentSearchService>, 'exportPayments'>
}

/** How many payments are in a message of an export. */
export function countExported(message: object): number {
  return (message as Pick<ExportPaymentsResponse, 'payments'>).payments.length
}

/** Some 30 KB: larger texts are collected late. Clients of gRPC take messages of 4 MB unless told otherwise. */
const MOST_PAYMENTS = 20
const MOST_ENTRIES = 200

/** Cuts a page into messages: by payments, and before that by the entries of their lists, which may be many. */
function* batchesOf(page: readonly Payment[]): Generator<readonly Payment[]> {
  let batch: Payment[] = []
  let entries = 0
  for (const payment of page) {
    const added = entriesOf(payment)
    if (batch.length === MOST_PAYMENTS || (batch.length > 0 && entries + added > MOST_ENTRIES)) {
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
