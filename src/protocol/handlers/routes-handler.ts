import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { FeeLine_Stage, FeeLine_Type } from '../../../gen/payments/v1/fee_line_pb.js'
import { Route_Speed, Route_StepKind, Route_Tag, type RouteSchema } from '../../../gen/payments/v1/route_pb.js'
import type { GetPaymentRoutesResponseSchema, RoutesService } from '../../../gen/payments/v1/routes_service_pb.js'
import type { Account } from '../../domain/account.ts'
import { formatAddress } from '../../domain/address.ts'
import type { Route, RoutesAnswer, RoutesQuestion } from '../../domain/route.ts'
import { accountOf, type ServiceHandlers } from '../call-context.ts'

/** Finds the routes of a request; the routing room does. */
export type FindRoutes = (
  account: Account,
  question: RoutesQuestion,
  options: { readonly signal: AbortSignal; readonly deadlineAtMs?: number },
) => Promise<RoutesAnswer>

/** Makes the handlers of RoutesService. */
export function createRoutesHandlers({ findRoutes }: { readonly findRoutes: FindRoutes }) {
  return {
    async getPaymentRoutes(request, context) {
      const { signal, deadlineAtMs } = context
      const options = deadlineAtMs === undefined ? { signal } : { signal, deadlineAtMs }
      return toResponse(await findRoutes(accountOf(context), request, options))
    },
  } satisfies ServiceHandlers<typeof RoutesService>
}

function toResponse(answer: RoutesAnswer): MessageInitShape<typeof GetPaymentRoutesResponseSchema> {
  return {
    routes: answer.routes.map(toRoute),
    amount: answer.amount,
    currency: answer.currency,
    warnings: [...answer.warnings],
    unavailable: [...answer.unavailable],
    degraded: answer.degraded,
  }
}

function toRoute({ tokenAddress, ...route }: Route): MessageInitShape<typeof RouteSchema> {
  return {
    ...route,
    ...(tokenAddress === undefined ? {} : { tokenAddress: formatAddress(tokenAddress) }),
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
