import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { PaymentRequest_Status, type PaymentRequestSchema } from '../../../gen/payments/v1/payment_request_pb.js'
import type { RequestsService } from '../../../gen/payments/v1/requests_service_pb.js'
import { formatAddress } from '../../domain/address.ts'
import { requestStatuses } from '../../domain/payment-request.ts'
import type { RequestWithBalance } from '../../requests/request-repository.ts'
import type { Requests } from '../../requests/requests.ts'
import { accountOf, type ServiceHandlers } from '../call-context.ts'

/** Serves RequestsService. */
export function createRequestsHandlers(requests: Requests): ServiceHandlers<typeof RequestsService> {
  return {
    async createPaymentRequest(request, context) {
      const idempotencyKey = context.requestHeader.get('idempotency-key') ?? undefined
      const options = { idempotencyKey, signal: context.signal }
      return requestToProto(await requests.create(accountOf(context), request, options))
    },
    async getPaymentRequest(request, context) {
      return requestToProto(await requests.get(accountOf(context), request.paymentReference, context.signal))
    },
    async listPaymentRequests({ status, limit, cursor }, context) {
      const statuses = requestStatuses.filter((name) => status.includes(PaymentRequest_Status[name]))
      const page = await requests.list(accountOf(context), { statuses, limit, cursor }, context.signal)
      const { nextCursor, prevCursor } = page
      return {
        requests: page.requests.map(requestToProto),
        pagination: {
          limit: page.limit,
          hasMore: nextCursor !== undefined,
          ...(nextCursor !== undefined && { nextCursor }),
          ...(prevCursor !== undefined && { prevCursor }),
        },
      }
    },
  }
}

function requestToProto({ request, balance }: RequestWithBalance): MessageInitShape<typeof PaymentRequestSchema> {
  const { createdAt, payee, refundAddress, ...terms } = request
  return {
    ...terms,
    ...balance,
    status: PaymentRequest_Status[balance.status],
    payee: formatAddress(payee),
    ...(refundAddress !== undefined && { refundAddress: formatAddress(refundAddress) }),
    createdAt: timestampFromDate(createdAt),
  }
}
