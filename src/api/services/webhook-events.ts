import { create, isFieldSet } from '@bufbuild/protobuf'
import { PaymentSchema } from '../../../gen/payments/v1/payment_pb.js'
import { PaymentRequestSchema } from '../../../gen/payments/v1/payment_request_pb.js'
import { SearchPaymentsRequestSchema } from '../../../gen/payments/v1/payment_search_service_pb.js'
import type { Account } from '../../domain/account.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { RequestChange } from '../../requests/sql/request-changes.ts'
import type { PaymentFilter } from '../../search/filter/payment-filter.ts'
import type { FilterInput } from '../../search/filter/search-fields.ts'
import type { WatchBatch, WatchEvent, WatchQuery } from '../../search/sql/watch-repository.ts'
import { TranscodingError } from '../../transcoding/errors/transcoding-error.ts'
import { compileJsonSerializer } from '../../transcoding/messages/json-serializer.ts'
import { compileQueryMapping } from '../../transcoding/query-mapping.ts'
import type { WebhookEvent } from '../../webhooks/rules/endpoint.ts'
import type { ChangeSource } from '../../webhooks/send/endpoint-worker.ts'
import { isCommaSeparated } from '../messages/proto-options.ts'
import { fromTranscodingError } from '../messages/request-errors.ts'
import { createValidate } from '../messages/validation.ts'
import { filterInputOf, noFilters } from './payment-filter-input.ts'
import type { PaymentToProto } from './payment-to-proto.ts'
import { type RequestsCalls, requestToProto } from './requests-handler.ts'

/** What webhooks are made of. */
export interface WebhookReads {
  readonly parseFilter: (account: Account, input: FilterInput, signal?: AbortSignal) => Promise<PaymentFilter>
  readonly readPayments: (query: WatchQuery, signal: AbortSignal) => Promise<WatchBatch>
  readonly readRequests: (
    range: { readonly accountId: number; readonly after: bigint; readonly through: bigint },
    signal: AbortSignal,
  ) => Promise<readonly RequestChange[]>
  readonly toProto: PaymentToProto
  readonly warningsOf: RequestsCalls['warningsOf']
}

/** Limits of what is read at once: changes looked at, events of payments, and bytes of their lists. */
const BATCH = { changes: 1_000, events: 64, bytes: 64 * 1024 }

const writePayment = compileJsonSerializer(PaymentSchema)
const writeRequest = compileJsonSerializer(PaymentRequestSchema)

const mapQuery = compileQueryMapping(SearchPaymentsRequestSchema, {
  boundInPath: [],
  boundInBody: '',
  isCommaSeparated,
})
const validate = createValidate()

/** Reads the filter of a webhook. @throws WaybillError of kind INVALID_INPUT, as a search with this query string does */
export function readQueryFilter(text: string): FilterInput {
  const message = create(SearchPaymentsRequestSchema)
  try {
    mapQuery(message, text)
  } catch (error) {
    if (!(error instanceof TranscodingError)) throw error
    throw fromTranscodingError(error, SearchPaymentsRequestSchema)
  }
  const other = noFilters.find((name) => isFieldSet(message, SearchPaymentsRequestSchema.field[name]))
  if (other !== undefined) {
    throw waybillError('INVALID_FIELD', { field: 'filter', detail: `${other} chooses no payments` })
  }
  validate(SearchPaymentsRequestSchema, message)
  return filterInputOf(message)
}

/** Makes what opens the changes that a webhook sees, each with its resource in the JSON of the API. */
export function createOpenChanges(reads: WebhookReads): ChangeSource['open'] {
  return async ({ accountId, kinds, filter: stored }, signal) => {
    // The names of an account are found by its id.
    const filter = await reads.parseFilter({ id: accountId, name: '' }, readQueryFilter(stored), signal)
    const seesRequests = kinds.includes('request.updated')
    return async ({ after, changes = BATCH.changes }, until) => {
      const batch = await reads.readPayments({ filter, after, ...BATCH, changes }, until)
      const { through, lastChange, prunedChange } = batch
      const hasRequests = seesRequests && through > after
      const requests = hasRequests ? await reads.readRequests({ accountId, after, through }, until) : []
      const events = [
        ...batch.events.map((event) => paymentEvent(event, reads.toProto)),
        ...requests.map((change) => requestEvent(change, reads.warningsOf)),
      ]
      return {
        events: events
          .filter(({ kind }) => kinds.includes(kind))
          .toSorted((a, b) => (a.change < b.change ? -1 : Number(a.change > b.change))),
        through,
        lastChange,
        prunedChange,
      }
    }
  }
}

function paymentEvent(event: WatchEvent, toProto: PaymentToProto): WebhookEvent {
  const { change, at } = event
  if (event.type !== 'REMOVED') {
    const kind = event.type === 'ADDED' ? 'payment.added' : 'payment.updated'
    return { change, at, kind, subject: event.payment.id, data: writePayment(toProto(event.payment)) }
  }
  const { id, payment } = event
  const removed = JSON.stringify({ id, changedAt: at.toISOString() })
  const data = payment === undefined ? removed : `${removed.slice(0, -1)},"payment":${writePayment(toProto(payment))}}`
  return { change, at, kind: 'payment.removed', subject: id, data }
}

function requestEvent({ change, at, found }: RequestChange, warningsOf: RequestsCalls['warningsOf']): WebhookEvent {
  const data = writeRequest(requestToProto(found, warningsOf(found.request)))
  return { change, at, kind: 'request.updated', subject: found.request.requestId, data }
}
