import { create } from '@bufbuild/protobuf'
import { createContextValues, createHandlerContext } from '@connectrpc/connect'
import { expect, it } from 'vitest'
import {
  ExportPaymentsRequestSchema,
  PaymentSearchService,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import type { Payment } from '../../domain/payment.ts'
import { callerKey } from '../calls/call.ts'
import { createPaymentSearchHandlers } from './payment-search-handler.ts'
import { createPaymentToProto } from './payment-to-proto.ts'

const context = createHandlerContext({
  service: PaymentSearchService,
  method: PaymentSearchService.method.exportPayments,
  protocolName: 'grpc',
  requestMethod: 'POST',
  url: '/',
  contextValues: createContextValues().set(callerKey, { account: { id: 4, name: 'acme' }, keyId: 'key' }),
})

it('gives answers without a getter of their own, which V8 would keep until a major collection', async () => {
  const reads = {
    async *readExport() {
      yield [{ fees: [], exchangeRates: [], refunds: [], statusHistory: [] }] as unknown as readonly Payment[]
    },
  }
  const handlers = createPaymentSearchHandlers(reads as never, {} as never, createPaymentToProto())
  for await (const answer of handlers.exportPayments(create(ExportPaymentsRequestSchema), context)) {
    expect('payments' in answer).toBe(true)
    expect(Object.keys(answer)).toEqual(['batch', 'toProto'])
  }
  expect.assertions(2)
})
