import { PaymentSearchService } from '../../../gen/payments/v1/payment_search_service_pb.js'
import { RequestsService } from '../../../gen/payments/v1/requests_service_pb.js'
import { RoutesService } from '../../../gen/payments/v1/routes_service_pb.js'
import type { Requests } from '../../requests/requests.ts'
import { type ServedService, serveService } from '../call-core.ts'
import { createPaymentSearchHandlers, type PaymentSearchCalls } from './payment-search-handler.ts'
import { createRequestsHandlers } from './requests-handler.ts'
import { createRoutesHandlers, type RoutesCalls } from './routes-handler.ts'
import { createWatchHandlers, type WatchCalls } from './watch-handler.ts'

/** What the rooms do for the services of `payments.v1`. */
export interface PaymentsCalls {
  readonly routes: RoutesCalls
  readonly payments: PaymentSearchCalls
  readonly watch: WatchCalls
  readonly requests: Requests
}

/**
 * Fields of `payments.v1` that move with every block without the resource having changed. Not `asOf`: an answer that is empty
 * until a block says more when that block has been looked at.
 */
export const VOLATILE_FIELDS = ['confirmations'] as const

/** The services of `payments.v1`, with the scope that each method asks of a key. */
export function createPaymentsServices({ routes, payments, watch, requests }: PaymentsCalls): readonly ServedService[] {
  return [
    serveService(RoutesService, createRoutesHandlers(routes), {
      getPaymentRoutes: 'routes:read',
      streamPaymentRoutes: 'routes:read',
      getPaymentCalldata: 'routes:read',
    }),
    serveService(
      PaymentSearchService,
      { ...createPaymentSearchHandlers(payments), ...createWatchHandlers(watch) },
      {
        searchPayments: 'payments:read',
        getPayment: 'payments:read',
        summarizePayments: 'payments:read',
        exportPayments: 'payments:read',
        watchPayments: { scope: 'payments:read', takesTicket: true },
        createWatchTicket: 'payments:read',
      },
    ),
    serveService(RequestsService, createRequestsHandlers(requests), {
      createPaymentRequest: 'requests:write',
      getPaymentRequest: 'requests:read',
      listPaymentRequests: 'requests:read',
    }),
  ]
}
