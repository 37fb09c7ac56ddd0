import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import { FeeLine_Stage, FeeLine_Type } from '../../../gen/payments/v1/fee_line_pb.js'
import type { PaymentCalldataSchema } from '../../../gen/payments/v1/payment_calldata_pb.js'
import { Route_Speed, Route_StepKind, Route_Tag, RouteSchema } from '../../../gen/payments/v1/route_pb.js'
import {
  type GetPaymentRoutesRequest,
  GetPaymentRoutesRequest_Sort,
  type GetPaymentRoutesResponseSchema,
  type RoutesService,
  type StreamPaymentRoutesRequest,
  type StreamPaymentRoutesResponseSchema,
} from '../../../gen/payments/v1/routes_service_pb.js'
import { type FindExplorer, noExplorer } from '../../chains/explorer.ts'
import { formatAddress } from '../../domain/address.ts'
import { requirePaymentReference } from '../../domain/require-input.ts'
import type {
  PreparedPayment,
  Route,
  RouteSort,
  RoutesAnswer,
  RoutesEvent,
  RoutesQuestion,
} from '../../domain/route.ts'
import { WaybillError } from '../../errors/waybill-error.ts'
import type { QuoteChangedError } from '../../routing/prepare-payment.ts'
import type { Routing } from '../../routing/routing.ts'
import { accountOf, type CallContext } from '../calls/call.ts'
import { sendAlong } from '../calls/error-mapping.ts'
import type { ServiceChecks } from '../calls/served-method.ts'

/** What the handlers ask of the routing module. */
export type RoutesCalls = Omit<Routing, 'warningsOf' | 'learnNodes' | 'findTransfer'>

/** The checks of RoutesService. */
export function createRoutesChecks(calls: RoutesCalls): ServiceChecks<typeof RoutesService> {
  return {
    getPaymentRoutes: (request) => calls.checkQuestion(questionOf(request)),
    streamPaymentRoutes: (request) => calls.checkQuestion(questionOf(request)),
    getPaymentOptions: ({ paymentReference }) => requirePaymentReference('paymentReference', paymentReference),
    getPaymentCalldata: (request) => calls.checkPayment(request),
    getBatchCalldata: (request) => calls.checkBatch(request),
  }
}

/** Makes the handlers of RoutesService. */
export function createRoutesHandlers(calls: RoutesCalls, findExplorer: FindExplorer = noExplorer) {
  return {
    async getPaymentRoutes(request, context) {
      return toResponse(await calls.findRoutes(accountOf(context), questionOf(request), optionsOf(context)))
    },
    async *streamPaymentRoutes(request, context) {
      const events = calls.streamRoutes(accountOf(context), questionOf(request), optionsOf(context))
      for await (const event of events) yield toStreamed(event)
    },
    async getPaymentOptions({ paymentReference }, context) {
      const found = await calls.findOptions(accountOf(context), paymentReference, optionsOf(context))
      const { routes: options, ...answer } = toResponse(found)
      return { ...answer, options, paymentUri: found.paymentUri }
    },
    listCurrencies: () => ({
      currencies: calls.currencies.map((currency) => ({
        ...currency,
        address: currency.address && formatAddress(currency.address),
        native: currency.address === undefined,
        fiatCurrencies: [...currency.fiatCurrencies],
      })),
      pagination: { limit: calls.currencies.length, hasMore: false },
    }),
    async getPaymentCalldata(request, context) {
      const prepared = calls.preparePayment(accountOf(context), request, optionsOf(context))
      return toCalldata(await prepared.catch(throwWithQuote), findExplorer)
    },
    async getBatchCalldata(request, context) {
      const { prepared, ...sums } = await calls.prepareBatch(accountOf(context), request, optionsOf(context))
      return { ...toCalldata(prepared, findExplorer), ...sums }
    },
  } satisfies ServiceImpl<typeof RoutesService>
}

/** Adds the new quote to a QUOTE_CHANGED error. */
function throwWithQuote(error: unknown): never {
  if (!(error instanceof WaybillError) || error.reason !== 'QUOTE_CHANGED') throw error
  const route = toRoute((error as QuoteChangedError).route)
  const forms = [route, { ...route, warnings: [] }, { ...route, warnings: [], feeBreakdown: [] }]
  throw sendAlong(error, ...forms.map((form) => ({ desc: RouteSchema, message: create(RouteSchema, form) })))
}

function optionsOf({ signal, timeoutMs }: CallContext) {
  const leftMs = timeoutMs()
  return leftMs === undefined ? { signal } : { signal, deadlineAtMs: Date.now() + leftMs }
}

function questionOf(request: GetPaymentRoutesRequest | StreamPaymentRoutesRequest): RoutesQuestion {
  const { sort } = request
  return { ...request, sort: sort === undefined ? undefined : (GetPaymentRoutesRequest_Sort[sort] as RouteSort) }
}

function toStreamed(event: RoutesEvent): MessageInitShape<typeof StreamPaymentRoutesResponseSchema> {
  switch (event.kind) {
    case 'ROUTE':
      return { event: { case: 'route', value: { route: toRoute(event.route), rank: event.rank } } }
    case 'UNAVAILABLE':
      return { event: { case: 'unavailable', value: event.unavailable } }
    case 'ANSWER':
      return { event: { case: 'answer', value: toResponse(event.answer) } }
  }
}

function toCalldata(payment: PreparedPayment, findExplorer: FindExplorer) {
  return {
    route: toRoute(payment.route),
    transactions: [...payment.transactions],
    steps: payment.steps.map(({ kind, message }) => ({ kind: Route_StepKind[kind], message })),
    warnings: [...payment.warnings],
    maxSourceAmount: payment.maxSourceAmount,
    expiresAt: timestampFromDate(payment.route.expiresAt),
    explorer: findExplorer(payment.route.chain),
  } satisfies MessageInitShape<typeof PaymentCalldataSchema>
}

function toResponse(answer: RoutesAnswer) {
  return {
    routes: answer.routes.map(toRoute),
    amount: answer.amount,
    currency: answer.currency,
    warnings: [...answer.warnings],
    unavailable: [...answer.unavailable],
    degraded: answer.degraded,
  } satisfies MessageInitShape<typeof GetPaymentRoutesResponseSchema>
}

function toRoute(route: Route): MessageInitShape<typeof RouteSchema> {
  const { tokenAddress } = route
  return {
    ...route,
    tokenAddress: tokenAddress && formatAddress(tokenAddress),
    speed: Route_Speed[route.speed],
    feeBreakdown: route.feeBreakdown.map((line) => ({
      ...line,
      type: FeeLine_Type[line.type],
      stage: FeeLine_Stage[line.stage],
    })),
    tags: route.tags.map((tag) => Route_Tag[tag]),
    expiresAt: timestampFromDate(route.expiresAt),
    warnings: [...route.warnings],
    readiness: { ...route.readiness, steps: route.readiness.steps.map((step) => Route_StepKind[step]) },
  }
}
