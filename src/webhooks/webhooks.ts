import { randomUUID } from 'node:crypto'
import type { Account } from '../domain/account.ts'
import { parseUuid } from '../domain/identifiers.ts'
import { requireDate, requireNote } from '../domain/require-input.ts'
import { readAllInOrder } from '../errors/gather-errors.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { type AuditAction, actorOf, type Changer } from '../store/audit-repository.ts'
import { type Delivery, type Endpoint, type EventKind, eventKinds } from './rules/endpoint.ts'
import { requireEndpointUrl } from './rules/endpoint-url.ts'
import { secretOf, secretsInForce, signEvent, webhookIdOf } from './rules/sign-webhook.ts'
import type { PostWebhook } from './send/post-webhook.ts'
import type { EndpointChange, EndpointPatch, EndpointRepository } from './sql/endpoint-repository.ts'

/** What a caller sets of an endpoint. What is undefined stays, or has its default. */
export interface WebhookInput {
  readonly url?: string | undefined
  /** Empty for all, or as they are. */
  readonly kinds: readonly EventKind[]
  readonly filter?: string | undefined
  readonly description?: string | undefined
}

export interface WebhookUpdate extends WebhookInput {
  readonly isPaused?: boolean | undefined
}

/** Where a replay begins: one of both. */
export interface ReplayInput {
  readonly fromTime?: string | undefined
  readonly fromPosition?: bigint | undefined
}

/** An endpoint as its account sees it. */
export interface Webhook extends Endpoint {
  /** Deliveries that failed, and those behind them. */
  readonly parked: number
  /** The last change of the account. */
  readonly lastChange: bigint
}

export interface WebhooksOptions {
  readonly repository: EndpointRepository
  /** Reads a filter as a search does. @throws WaybillError of kind INVALID_INPUT */
  readonly checkFilter: (account: Account, filter: string, signal?: AbortSignal) => Promise<unknown>
  readonly post: PostWebhook
  /** 32 bytes from which secrets are derived, the same for all processes on one database. */
  readonly master: Uint8Array
  readonly now: () => Date
  /** Whether http and addresses of private networks are allowed. */
  readonly allowsPrivate: boolean
}

export type Webhooks = ReturnType<typeof createWebhooks>

const MAX_ENDPOINTS = 20
/** Deliveries that are listed. */
const MAX_LISTED = 100
/** How long the old secret is valid beside the new one. */
const OVERLAP_MS = 24 * 3_600_000
/** For which the log is kept. */
const KEPT_MS = 7 * 86_400_000

/** Creates the service of an account's endpoints. */
export function createWebhooks(options: WebhooksOptions) {
  const { repository, master, now } = options
  const changeBy = (by: Changer, action: AuditAction): EndpointChange => ({
    ...actorOf(by),
    at: now(),
    action,
  })

  const check = (account: Account, input: WebhookInput, signal?: AbortSignal) =>
    checkInput(options, account, input, signal)

  async function withState(account: Account, found: readonly Endpoint[], signal?: AbortSignal): Promise<Webhook[]> {
    const counts = await repository.countParked(account, signal)
    const { last } = await repository.extent(account, signal)
    return found.map((endpoint) => ({ ...endpoint, parked: counts.get(endpoint.id) ?? 0, lastChange: last }))
  }

  async function find(account: Account, id: string, signal?: AbortSignal): Promise<Endpoint> {
    return requireFound(await repository.find(account, requireId(id), signal), id)
  }

  async function update(
    account: Account,
    id: string,
    patch: (found: Endpoint) => EndpointPatch,
    change: EndpointChange,
    signal?: AbortSignal,
  ): Promise<Webhook> {
    const updated = requireFound(await repository.update(account, requireId(id), patch, change, signal), id)
    return (await withState(account, [updated], signal))[0] as Webhook
  }

  return {
    /** Reads what was sent, and does nothing else. @throws WaybillError of kind INVALID_INPUT */
    check,
    /** @throws WaybillError MISSING_FIELD, INVALID_WEBHOOK_URL, INVALID_FIELD, TOO_MANY_WEBHOOKS, those of a filter */
    async create(account: Account, input: WebhookInput, by: Changer, signal?: AbortSignal) {
      if (input.url === undefined) throw waybillError('MISSING_FIELD', { field: 'url' })
      const { url = input.url } = await check(account, input, signal)
      const kinds = input.kinds.length === 0 ? eventKinds : [...new Set(input.kinds)]
      const { filter = '', description } = input
      const terms = { id: randomUUID(), url, kinds, filter, description }
      const made = await repository.insert(account, terms, changeBy(by, 'CREATE_WEBHOOK'), refuseTooMany, signal)
      const [webhook] = await withState(account, [made], signal)
      return { webhook: webhook as Webhook, secret: secretOf(master, made.id, made.secretNumber) }
    },
    /** @throws WaybillError WEBHOOK_NOT_FOUND, as all that follow */
    async get(account: Account, id: string, signal?: AbortSignal): Promise<Webhook> {
      return (await withState(account, [await find(account, id, signal)], signal))[0] as Webhook
    },
    /** In the order of their creation. */
    list: async (account: Account, signal?: AbortSignal): Promise<Webhook[]> =>
      withState(account, await repository.list(account, signal), signal),
    /** Changes what is given. @throws WaybillError as `create` does */
    async update(account: Account, id: string, input: WebhookUpdate, by: Changer, signal?: AbortSignal) {
      const { url } = await check(account, input, signal)
      const change = changeBy(by, 'UPDATE_WEBHOOK')
      const patch = (found: Endpoint) => patchOf(found, { ...input, url }, change.at)
      return update(account, id, patch, change, signal)
    },
    /** @throws WaybillError WEBHOOK_NOT_FOUND */
    async remove(account: Account, id: string, by: Changer, signal?: AbortSignal): Promise<void> {
      const isRemoved = await repository.remove(account, requireId(id), changeBy(by, 'REMOVE_WEBHOOK'), signal)
      if (!isRemoved) throw waybillError('WEBHOOK_NOT_FOUND', { value: id })
    },
    /** Gives an endpoint a new secret; the old one signs too for a day. @throws WaybillError WEBHOOK_NOT_FOUND */
    async rotate(account: Account, id: string, by: Changer, signal?: AbortSignal) {
      const change = changeBy(by, 'ROTATE_WEBHOOK_SECRET')
      const patch = ({ secretNumber }: Endpoint): EndpointPatch => ({
        secret_number: secretNumber + 1,
        old_secret_until: new Date(change.at.getTime() + OVERLAP_MS),
      })
      const webhook = await update(account, id, patch, change, signal)
      return { webhook, secret: secretOf(master, webhook.id, webhook.secretNumber) }
    },
    /** Sends a `webhook.test`, whether it is paused or not. @throws WaybillError WEBHOOK_NOT_FOUND */
    test: async (account: Account, id: string, signal: AbortSignal) =>
      sendTest(options, await find(account, id, signal), signal),
    /** Parked deliveries, then those that ended last. @throws WaybillError WEBHOOK_NOT_FOUND */
    async deliveries(account: Account, id: string, signal?: AbortSignal) {
      const endpoint = await find(account, id, signal)
      const found = await repository.deliveries(account, endpoint.id, MAX_LISTED, signal)
      const withId = (delivery: Delivery) => ({ ...delivery, webhookId: webhookIdOf(endpoint.id, delivery) })
      return { deliveries: found.map(withId), limit: MAX_LISTED }
    },
    /**
     * Sends again what followed a moment or a change. What was not sent yet is sent too.
     *
     * @throws WaybillError WEBHOOK_NOT_FOUND, MISSING_FIELD, INVALID_DATE, INVALID_FIELD for a position ahead of the log, REPLAY_TOO_OLD
     */
    async replay(account: Account, id: string, input: ReplayInput, by: Changer, signal?: AbortSignal) {
      const endpoint = await find(account, id, signal)
      const from = await findPosition(repository, account, input, now(), signal)
      const patch = ({ position }: Endpoint) => ({ position: from < position ? from : position })
      return update(account, endpoint.id, patch, changeBy(by, 'REPLAY_WEBHOOK'), signal)
    },
  }
}

function checkInput(
  { checkFilter, allowsPrivate }: WebhooksOptions,
  account: Account,
  { url, filter, description }: WebhookInput,
  signal: AbortSignal | undefined,
) {
  return readAllInOrder({
    url: () => (url === undefined ? undefined : requireEndpointUrl('url', url, allowsPrivate)),
    filter: () => (filter === undefined ? undefined : checkFilter(account, filter, signal)),
    // An empty one removes the note.
    description: () => description && requireNote('description', description),
  })
}

function patchOf(
  found: Endpoint,
  { url, kinds, filter, description, isPaused }: WebhookUpdate,
  at: Date,
): EndpointPatch {
  return {
    ...(url !== undefined && { url }),
    ...(kinds.length > 0 && { kinds: [...new Set(kinds)] }),
    ...(filter !== undefined && { filter }),
    ...(description !== undefined && { description: description === '' ? null : description }),
    ...(isPaused === false && { pause: null }),
    ...(isPaused === true && { pause: found.paused ?? { at, reason: 'BY_ACCOUNT' } }),
  }
}

async function sendTest({ post, master, now }: WebhooksOptions, endpoint: Endpoint, signal: AbortSignal) {
  const at = now()
  const event = { kind: 'webhook.test', change: 0n, at, data: JSON.stringify({ webhook: endpoint.id }) } as const
  const signed = signEvent(endpoint.id, event, secretsInForce(master, endpoint, at), at)
  return { ...(await post({ url: endpoint.url, ...signed }, signal)), webhookId: webhookIdOf(endpoint.id, event) }
}

/** The position after which a replay begins. */
async function findPosition(
  repository: EndpointRepository,
  account: Account,
  { fromTime, fromPosition }: ReplayInput,
  now: Date,
  signal: AbortSignal | undefined,
): Promise<bigint> {
  const { pruned, last } = await repository.extent(account, signal)
  const tooOld = () => waybillError('REPLAY_TOO_OLD', {})
  if (fromPosition !== undefined) {
    if (fromPosition > last)
      throw waybillError('INVALID_FIELD', { field: 'fromPosition', detail: `the last change is ${last}` })
    if (fromPosition < pruned) throw tooOld()
    return fromPosition
  }
  if (fromTime === undefined) throw waybillError('MISSING_FIELD', { field: 'fromTime' })
  const { atMs } = requireDate('fromTime', fromTime, undefined)
  if (atMs < now.getTime() - KEPT_MS) throw tooOld()
  return (await repository.lastBefore(account, new Date(atMs), signal)) ?? pruned
}

function refuseTooMany(count: number): void {
  if (count >= MAX_ENDPOINTS) throw waybillError('TOO_MANY_WEBHOOKS', { limit: MAX_ENDPOINTS })
}

/** What cannot be an id is not found: no id has another form. */
function requireId(text: string): string {
  const id = parseUuid(text)
  if (id === undefined) throw waybillError('WEBHOOK_NOT_FOUND', { value: text })
  return id
}

function requireFound(found: Endpoint | undefined, value: string): Endpoint {
  if (found === undefined) throw waybillError('WEBHOOK_NOT_FOUND', { value })
  return found
}
