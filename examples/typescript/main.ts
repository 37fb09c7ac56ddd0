/** Lists routes, searches, watches, creates a request and follows it, and reads a typed error, over Connect. Node 22.18 or newer runs it without a build. */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { BadRequestSchema, ErrorInfoSchema } from './gen/google/rpc/error_details_pb.js'
import { Payment_Status } from './gen/payments/v1/payment_pb.js'
import { PaymentRequest_Status } from './gen/payments/v1/payment_request_pb.js'
import { PaymentSearchService, WatchPaymentsResponse_Type } from './gen/payments/v1/payment_search_service_pb.js'
import { RequestsService } from './gen/payments/v1/requests_service_pb.js'
import { RoutesService } from './gen/payments/v1/routes_service_pb.js'

const { WAYBILL_HOST, WAYBILL_KEY = '', WAYBILL_DEMO = '' } = process.env
const withKey: Interceptor = (next) => (request) => {
  request.header.set('x-api-key', WAYBILL_KEY)
  return next(request)
}
const transport = createConnectTransport({
  baseUrl: `http://${WAYBILL_HOST}`,
  httpVersion: '2',
  interceptors: [withKey],
  defaultTimeoutMs: 10_000,
})
const demo = JSON.parse(readFileSync(WAYBILL_DEMO, 'utf8'))
const wallet: string = demo.wallets.direct.address

const { routes } = await createClient(RoutesService, transport).getPaymentRoutes({
  paymentReference: demo.requests[0].paymentReference,
  wallet,
})
for (const route of routes) console.log('route', route.id, 'costs', route.feeAmount, route.feeCurrency)

const payments = createClient(PaymentSearchService, transport)
let found = 0
let cursor: string | undefined
do {
  const page = await payments.searchPayments({
    limit: 100,
    status: [Payment_Status.CONFIRMED],
    currency: ['DAI'],
    cursor,
  })
  found += page.payments.length
  cursor = page.pagination?.hasMore ? page.pagination.nextCursor : undefined
} while (cursor)
console.log('found', found, 'payments')

// Five seconds of changes. A longer watch goes on from the last watchCursor when it breaks off.
try {
  for await (const { type, id } of payments.watchPayments({}, { timeoutMs: 5000 })) {
    console.log('change', WatchPaymentsResponse_Type[type], id)
  }
} catch (error) {
  if (ConnectError.from(error).code !== Code.DeadlineExceeded) throw error
  console.log('watched')
}

const requests = createClient(RequestsService, transport)
const created = await requests.createPaymentRequest(
  { payee: wallet, amount: '49.90', invoiceCurrency: 'USDC', paymentCurrency: 'USDC', network: 'ETHEREUM' },
  { headers: { 'idempotency-key': randomUUID() } }, // the same key with the same body is answered with the same request
)
const { paymentReference } = created
console.log('created', paymentReference)

// The request as it is, then after each change.
for await (const { request } of requests.watchPaymentRequest({ paymentReference })) {
  if (request?.cancelledAt) {
    console.log('followed', paymentReference, 'cancelled')
    break
  }
  if (!request) continue // a heartbeat
  console.log('followed', paymentReference, PaymentRequest_Status[request.status])
  await requests.cancelPaymentRequest({ paymentReference })
}

try {
  await requests.createPaymentRequest({ amount: '1' })
} catch (error) {
  const failure = ConnectError.from(error)
  for (const { reason } of failure.findDetails(ErrorInfoSchema)) console.log('error', Code[failure.code], reason)
  for (const { fieldViolations } of failure.findDetails(BadRequestSchema)) {
    for (const { field, description } of fieldViolations) console.log('violation', `${field}:`, description)
  }
}
