import { KeysService } from '../../../gen/payments/v1/keys_service_pb.js'
import { OperationsService } from '../../../gen/payments/v1/operations_service_pb.js'
import { PaymentSearchService } from '../../../gen/payments/v1/payment_search_service_pb.js'
import { RequestsService } from '../../../gen/payments/v1/requests_service_pb.js'
import { RoutesService } from '../../../gen/payments/v1/routes_service_pb.js'
import { WebhooksService } from '../../../gen/payments/v1/webhooks_service_pb.js'
import type { KeysCalls } from '../../auth/auth.ts'
import { type FindExplorer, noExplorer } from '../../chains/explorer.ts'
import type { RefundWallets } from '../../requests/refund-wallets.ts'
import type { PaymentReads } from '../../search/payment-reads.ts'
import type { Webhooks } from '../../webhooks/webhooks.ts'
import { type ServedService, serveService } from '../calls/served-method.ts'
import { chooseExportForm, countExported } from './export-forms.ts'
import { createKeysChecks, createKeysHandlers } from './keys-handler.ts'
import { createOperationsHandlers, type OperationsCalls } from './operations-handler.ts'
import {
  createPaymentChecks,
  createPaymentSearchHandlers,
  type WatchCalls,
  watchEventId,
} from './payment-search-handler.ts'
import { createPaymentToProto } from './payment-to-proto.ts'
import { createRequestsChecks, createRequestsHandlers, type RequestsCalls } from './requests-handler.ts'
import { createRoutesChecks, createRoutesHandlers, type RoutesCalls } from './routes-handler.ts'
import { createWebhooksChecks, createWebhooksHandlers } from './webhooks-handler.ts'

/** What the services of `payments.v1` ask of the other modules. */
export interface PaymentsCalls {
  readonly routes: RoutesCalls
  readonly payments: PaymentReads
  readonly watch: WatchCalls
  readonly requests: RequestsCalls
  readonly wallets: RefundWallets
  readonly operations: OperationsCalls
  readonly webhooks: Webhooks
  readonly keys: KeysCalls
  /** Default: no chain has an explorer. */
  readonly findExplorer?: FindExplorer
}

/**
 * Fields of `payments.v1` that may change although the resource does not: `confirmations` with every block, and `watchCursor` with every
 * change of the account, while an old cursor still fits an unchanged answer. Not `asOf`: it tells up to which block an answer holds.
 */
export const VOLATILE_FIELDS = ['confirmations', 'watchCursor'] as const

/** The services of `payments.v1`, with the scope that each method requires. */
export function createPaymentsServices(calls: PaymentsCalls): readonly ServedService[] {
  const { routes, payments, watch, requests, wallets, operations, webhooks, keys, findExplorer = noExplorer } = calls
  const toProto = createPaymentToProto(findExplorer)
  return [
    serveService(
      RoutesService,
      createRoutesHandlers(routes, findExplorer),
      {
        getPaymentRoutes: { scope: 'routes:read', isForPages: true },
        streamPaymentRoutes: { scope: 'routes:read', isForPages: true },
        getPaymentOptions: { scope: 'routes:read', isForPages: true },
        listCurrencies: { scope: 'routes:read', isForPages: true },
        getPaymentCalldata: { scope: 'routes:read', isForPages: true },
        getBatchCalldata: 'routes:read',
      },
      createRoutesChecks(routes),
    ),
    serveService(
      PaymentSearchService,
      createPaymentSearchHandlers(payments, watch, toProto),
      {
        searchPayments: { scope: 'payments:read', slot: 'page' },
        getPayment: 'payments:read',
        summarizePayments: { scope: 'payments:read', slot: 'summary' },
        exportPayments: { scope: 'payments:read', slot: 'page', chooseForm: chooseExportForm, rowsOf: countExported },
        watchPayments: { scope: 'payments:read', takesTicket: true, eventIdOf: watchEventId },
        createWatchTicket: 'payments:read',
      },
      createPaymentChecks(payments),
    ),
    serveService(
      RequestsService,
      createRequestsHandlers(requests, wallets),
      {
        createPaymentRequest: 'requests:write',
        updatePaymentRequest: 'requests:write',
        getPaymentRequest: { scope: 'requests:read', isForPages: true },
        watchPaymentRequest: { scope: 'requests:read', isForPages: true },
        cancelPaymentRequest: 'requests:write',
        getShop: { scope: 'requests:read', isForPages: true },
        listPaymentRequests: { scope: 'requests:read', slot: 'page' },
        summarizePaymentRequests: { scope: 'requests:read', slot: 'summary' },
        addRefundWallet: 'requests:write',
        listRefundWallets: 'requests:read',
        removeRefundWallet: 'requests:write',
      },
      createRequestsChecks(requests),
    ),
    serveService(OperationsService, createOperationsHandlers(operations, findExplorer), {
      listChains: 'chains:read',
      listUnmatchedEvents: { scope: 'operations:read', slot: 'page' },
    }),
    serveService(WebhooksService, createWebhooksHandlers(webhooks), 'webhooks:write', createWebhooksChecks(webhooks)),
    serveService(
      KeysService,
      createKeysHandlers(keys),
      {
        createKey: 'keys:write',
        getOwnKey: 'any',
        listKeys: 'keys:write',
        rotateKey: 'keys:write',
        revokeKey: 'keys:write',
        listKeyChanges: 'keys:write',
      },
      createKeysChecks(keys),
    ),
  ]
}
