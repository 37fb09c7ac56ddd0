import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import {
  Webhook_Kind,
  Webhook_PauseReason,
  Webhook_State,
  WebhookDelivery_State,
  type WebhookDeliverySchema,
  type WebhookSchema,
} from '../../../gen/payments/v1/webhook_pb.js'
import type { UpdateWebhookRequest, WebhooksService } from '../../../gen/payments/v1/webhooks_service_pb.js'
import type { Delivery, EventKind } from '../../webhooks/rules/endpoint.ts'
import type { Webhook, WebhookInput, Webhooks } from '../../webhooks/webhooks.ts'
import { accountOf, callerOf } from '../calls/call.ts'
import type { ServiceChecks } from '../calls/served-method.ts'
import { memberOf } from './payment-filter-input.ts'

/** The checks of WebhooksService. */
export function createWebhooksChecks(webhooks: Webhooks): ServiceChecks<typeof WebhooksService> {
  return {
    createWebhook: (request, context) => webhooks.check(accountOf(context), inputOf(request), context.signal),
    updateWebhook: (request, context) => webhooks.check(accountOf(context), inputOf(request), context.signal),
  }
}

/** Serves WebhooksService. */
export function createWebhooksHandlers(webhooks: Webhooks): ServiceImpl<typeof WebhooksService> {
  return {
    async createWebhook(request, context) {
      const caller = callerOf(context)
      const { webhook, secret } = await webhooks.create(caller.account, inputOf(request), caller, context.signal)
      return { ...webhookToProto(webhook), secret }
    },
    async getWebhook({ id }, context) {
      return webhookToProto(await webhooks.get(accountOf(context), id, context.signal))
    },
    async listWebhooks(_, context) {
      const found = await webhooks.list(accountOf(context), context.signal)
      return { webhooks: found.map(webhookToProto), pagination: { limit: MAX_WEBHOOKS_A_PAGE, hasMore: false } }
    },
    async updateWebhook(request, context) {
      const caller = callerOf(context)
      const input = { ...inputOf(request), isPaused: request.paused }
      return webhookToProto(await webhooks.update(caller.account, request.id, input, caller, context.signal))
    },
    async deleteWebhook({ id }, context) {
      const caller = callerOf(context)
      await webhooks.remove(caller.account, id, caller, context.signal)
      return {}
    },
    async rotateWebhookSecret({ id }, context) {
      const caller = callerOf(context)
      const { webhook, secret } = await webhooks.rotate(caller.account, id, caller, context.signal)
      return { ...webhookToProto(webhook), secret }
    },
    async testWebhook({ id }, context) {
      const { webhookId, status, failure } = await webhooks.test(accountOf(context), id, context.signal)
      return { webhookId, httpStatus: status, failure }
    },
    async listWebhookDeliveries({ id }, context) {
      const { deliveries, limit } = await webhooks.deliveries(accountOf(context), id, context.signal)
      return { deliveries: deliveries.map(deliveryToProto), pagination: { limit, hasMore: false } }
    },
    async replayWebhook({ id, fromTime, fromPosition }, context) {
      const caller = callerOf(context)
      const from = { fromTime, fromPosition }
      return webhookToProto(await webhooks.replay(caller.account, id, from, caller, context.signal))
    },
  }
}

/** The most webhooks that an account can have, so there is always one page. */
const MAX_WEBHOOKS_A_PAGE = 20

type SentTerms = Pick<UpdateWebhookRequest, 'url' | 'kinds' | 'filter' | 'description'>

function inputOf({ url, kinds, filter, description }: Partial<SentTerms> & Pick<SentTerms, 'kinds'>): WebhookInput {
  return {
    url,
    kinds: kinds.map((number) => memberOf('kinds', Webhook_Kind, number).toLowerCase().replace('_', '.') as EventKind),
    filter,
    description,
  }
}

const kindOf = (kind: EventKind) => Webhook_Kind[kind.toUpperCase().replace('.', '_') as keyof typeof Webhook_Kind]

function webhookToProto(webhook: Webhook): MessageInitShape<typeof WebhookSchema> {
  const { id, url, kinds, filter, description, createdAt, paused, position, lastChange, parked, lostChanges } = webhook
  const { oldSecretUntil } = webhook
  return {
    id,
    url,
    kinds: kinds.map(kindOf),
    filter: filter === '' ? undefined : filter,
    description,
    state: paused === undefined ? Webhook_State.ACTIVE : Webhook_State.PAUSED,
    pauseReason: paused && Webhook_PauseReason[paused.reason],
    pausedAt: paused && timestampFromDate(paused.at),
    createdAt: timestampFromDate(createdAt),
    position,
    lastChange,
    parked,
    lostChanges,
    oldSecretUntil: oldSecretUntil && timestampFromDate(oldSecretUntil),
  }
}

function deliveryToProto(
  delivery: Delivery & { readonly webhookId: string },
): MessageInitShape<typeof WebhookDeliverySchema> {
  const { webhookId, kind, subject, change, at, state, attempts, attemptedAt, status, failure, dueAt } = delivery
  return {
    webhookId,
    kind: kindOf(kind),
    resourceId: subject,
    position: change,
    changedAt: timestampFromDate(at),
    state: WebhookDelivery_State[state],
    attempts,
    attemptedAt: attemptedAt && timestampFromDate(attemptedAt),
    httpStatus: status,
    failure,
    nextAttemptAt: dueAt && timestampFromDate(dueAt),
  }
}
