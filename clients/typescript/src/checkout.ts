/** What a checkout page needs but for its wallets, and no more: a bundler leaves the rest of the client out. */
import { RequestsService } from '../gen/payments/v1/requests_service_pb.js'
import { RoutesService } from '../gen/payments/v1/routes_service_pb.js'
import { createCaller, makeCalls, type WaybillOptions } from './calls.ts'
import { watchPaymentRequest } from './watch.ts'
import type { Waybill } from './waybill.ts'

export type { PaymentCalldata } from '../gen/payments/v1/payment_calldata_pb.js'
export { type PaymentRequest, PaymentRequest_Status } from '../gen/payments/v1/payment_request_pb.js'
export { type Route, Route_StepKind, Route_Tag } from '../gen/payments/v1/route_pb.js'
export type { GetPaymentRoutesResponse as StreamedRoutes } from '../gen/payments/v1/routes_service_pb.js'
export { type FieldViolation, WaybillCallError } from './call-error.ts'
export type { WaybillOptions } from './calls.ts'
export { findAsked } from './wallet/asked-mark.ts'

/** The calls that a publishable key may make. */
export type Checkout = Pick<
  Waybill,
  | 'getPaymentRequest'
  | 'watchPaymentRequest'
  | 'getShop'
  | 'getPaymentOptions'
  | 'listCurrencies'
  | 'getPaymentRoutes'
  | 'streamPaymentRoutes'
  | 'getPaymentCalldata'
>

/** Creates a client of one request's calls, for `pay` and what stands around it. */
export function createCheckout(options: WaybillOptions): Checkout {
  const caller = createCaller(options)
  const requests = makeCalls(caller, RequestsService)
  return {
    ...makeCalls(caller, RoutesService),
    getPaymentRequest: requests.getPaymentRequest,
    getShop: requests.getShop,
    watchPaymentRequest: (reference, more) => watchPaymentRequest(requests, reference, more),
  }
}
