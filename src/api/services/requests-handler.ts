import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import { PaymentRequest_Status, type PaymentRequestSchema } from '../../../gen/payments/v1/payment_request_pb.js'
import type {
  PaymentRequestSummary_GroupSchema,
  SummarizePaymentRequestsRequest,
} from '../../../gen/payments/v1/payment_request_summary_pb.js'
import { WatchPaymentRequestResponse_Type } from '../../../gen/payments/v1/payment_request_watch_pb.js'
import type { RefundWalletSchema } from '../../../gen/payments/v1/refund_wallet_pb.js'
import {
  type ListPaymentRequestsRequest,
  ListPaymentRequestsRequest_IncludeTotal,
  type RequestsService,
} from '../../../gen/payments/v1/requests_service_pb.js'
import type { Caller } from '../../auth/caller.ts'
import { formatAddress } from '../../domain/address.ts'
import { formatDecimal } from '../../domain/decimal.ts'
import { paymentReferenceOf } from '../../domain/identifiers.ts'
import type { PaymentRequest } from '../../domain/payment-request.ts'
import type { RouteWarning } from '../../domain/route.ts'
import type { ListInput } from '../../requests/list-requests.ts'
import type { RefundWallets } from '../../requests/refund-wallets.ts'
import type { Requests } from '../../requests/requests.ts'
import type { RefundWallet } from '../../requests/sql/refund-wallet-repository.ts'
import type { RequestWithBalance } from '../../requests/sql/request-repository.ts'
import type { RequestGroup, SummarizeRequests } from '../../requests/summarize-requests.ts'
import type { WatchRequest } from '../../requests/watch-request.ts'
import { accountOf, callerOf } from '../calls/call.ts'
import type { ServiceChecks } from '../calls/served-method.ts'
import { memberOf, paginationOf, wordOf } from './payment-filter-input.ts'

/** What the handlers ask of the other modules. */
export interface RequestsCalls {
  readonly requests: Requests
  readonly summarize: SummarizeRequests
  readonly watch: WatchRequest
  /** Why no wallet can pay a request as the service is configured; empty if one could. */
  readonly warningsOf: (request: PaymentRequest) => readonly RouteWarning[]
}

/** The checks of RequestsService. */
export function createRequestsChecks(calls: RequestsCalls): ServiceChecks<typeof RequestsService> {
  return {
    createPaymentRequest: (request) => calls.requests.check.create(request),
    updatePaymentRequest: (request) => calls.requests.check.update(request),
    getPaymentRequest: (request) => calls.requests.check.get(request.paymentReference),
    cancelPaymentRequest: (request) => calls.requests.check.get(request.paymentReference),
    watchPaymentRequest: (request) => calls.requests.check.get(request.paymentReference),
    listPaymentRequests: (request, context) =>
      calls.requests.check.list(accountOf(context), listInputOf(request), context.signal),
    summarizePaymentRequests: (request, context) =>
      calls.requests.check.list(accountOf(context), filterInputOf(request), context.signal),
  }
}

/** Serves RequestsService. */
export function createRequestsHandlers(
  calls: RequestsCalls,
  wallets: RefundWallets,
): ServiceImpl<typeof RequestsService> {
  const toProto = (found: RequestWithBalance) => requestToProto(found, calls.warningsOf(found.request))
  const toCaller = (found: RequestWithBalance, { page }: Caller) => {
    const request = toProto(found)
    // The address is checked again: the key that it was checked with may be revoked.
    const isOwn = request.returnUrl === undefined || page?.origins.includes(new URL(request.returnUrl).origin) !== false
    return isOwn ? request : { ...request, returnUrl: undefined }
  }
  return {
    async createPaymentRequest(request, context) {
      const idempotencyKey = context.requestHeader.get('idempotency-key') ?? undefined
      const options = { idempotencyKey, signal: context.signal }
      return toProto(await calls.requests.create(accountOf(context), request, options))
    },
    async getPaymentRequest(request, context) {
      const caller = callerOf(context)
      return toCaller(await calls.requests.get(caller.account, request.paymentReference, context.signal), caller)
    },
    async updatePaymentRequest(request, context) {
      const caller = callerOf(context)
      return toProto(await calls.requests.update(caller.account, request, caller, context.signal))
    },
    async cancelPaymentRequest(request, context) {
      return toProto(await calls.requests.cancel(accountOf(context), request.paymentReference, context.signal))
    },
    async *watchPaymentRequest(request, context) {
      const caller = callerOf(context)
      const first = await calls.requests.get(caller.account, request.paymentReference, context.signal)
      for await (const message of calls.watch(caller.account, first, context.signal)) {
        const found = message.type === 'STATE' ? toCaller(message.found, caller) : undefined
        yield {
          type: WatchPaymentRequestResponse_Type[message.type],
          request: found,
          at: timestampFromDate(message.at),
        }
      }
    },
    async listPaymentRequests(request, context) {
      const page = await calls.requests.list(accountOf(context), listInputOf(request), context.signal)
      return { requests: page.requests.map(toProto), pagination: paginationOf(page) }
    },
    async summarizePaymentRequests(request, context) {
      const { groups, count } = await calls.summarize(accountOf(context), filterInputOf(request), context.signal)
      return { groups: groups.map(groupToProto), count }
    },
    getShop: (_, context) => callerOf(context).page?.shop ?? {},
    async addRefundWallet(wallet, context) {
      const caller = callerOf(context)
      return walletToProto(await wallets.add(caller.account, wallet, caller, context.signal))
    },
    async listRefundWallets({ includeRemoved = false }, context) {
      const found = await wallets.list(accountOf(context), includeRemoved, context.signal)
      return { wallets: found.map(walletToProto), pagination: { limit: MAX_WALLETS_A_PAGE, hasMore: false } }
    },
    async removeRefundWallet({ address }, context) {
      const caller = callerOf(context)
      return walletToProto(await wallets.remove(caller.account, address, caller, context.signal))
    },
  }
}

function listInputOf(request: ListPaymentRequestsRequest): ListInput {
  const includeTotal = wordOf('includeTotal', ListPaymentRequestsRequest_IncludeTotal, request.includeTotal)
  return { ...filterInputOf(request), includeTotal }
}

/** The filters of a request, which have the same names there. */
function filterInputOf<R extends ListPaymentRequestsRequest | SummarizePaymentRequestsRequest>(request: R) {
  return { ...request, status: request.status.map((number) => memberOf('status', PaymentRequest_Status, number)) }
}

function groupToProto({ invoiceCurrency, symbol, network, count, ...amounts }: RequestGroup) {
  return {
    invoiceCurrency,
    symbol,
    network,
    count,
    amount: formatDecimal(amounts.amount),
    paidAmount: formatDecimal(amounts.paidAmount),
    pendingAmount: formatDecimal(amounts.pendingAmount),
    outstandingAmount: formatDecimal(amounts.outstandingAmount),
    overpaidAmount: formatDecimal(amounts.overpaidAmount),
  } satisfies MessageInitShape<typeof PaymentRequestSummary_GroupSchema>
}

/** Turns a request into its message. */
export function requestToProto({ request, balance }: RequestWithBalance, warnings: readonly RouteWarning[]) {
  const { createdAt, expiresAt, cancelledAt, payee, amount, refundAddress, ...others } = request
  const { allowedPayers = [], metadata = {}, ...terms } = others
  const { requestId, salt } = terms
  return {
    ...terms,
    metadata,
    amount: formatDecimal(amount),
    status: PaymentRequest_Status[balance.status],
    paidAmount: formatDecimal(balance.paidAmount),
    pendingAmount: formatDecimal(balance.pendingAmount),
    outstandingAmount: formatDecimal(balance.outstandingAmount),
    overpaidAmount: formatDecimal(balance.overpaidAmount),
    payee: formatAddress(payee),
    refundAddress: refundAddress && formatAddress(refundAddress),
    allowedPayers: allowedPayers.map(formatAddress),
    refundReference: refundAddress && paymentReferenceOf(requestId, salt, refundAddress),
    createdAt: timestampFromDate(createdAt),
    expiresAt: expiresAt && timestampFromDate(expiresAt),
    cancelledAt: cancelledAt && timestampFromDate(cancelledAt),
    warnings: [...warnings],
  } satisfies MessageInitShape<typeof PaymentRequestSchema>
}

/** The most wallets that an account can ever register, so there is always one page. */
const MAX_WALLETS_A_PAGE = 1_000

function walletToProto({
  address,
  note,
  registeredAt,
  removedAt,
}: RefundWallet): MessageInitShape<typeof RefundWalletSchema> {
  return {
    address: formatAddress(address),
    note,
    registeredAt: timestampFromDate(registeredAt),
    removedAt: removedAt && timestampFromDate(removedAt),
  }
}
