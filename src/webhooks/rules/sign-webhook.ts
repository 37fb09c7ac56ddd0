import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { DeliveredChange, Endpoint, EventKind } from './endpoint.ts'

/*
 * Secrets are needed to sign, so a hash would not do. They are derived from 32 bytes in the table of settings and the endpoint's id, and never stored:
 * no row, binding, log of the server or export of a table has one.
 */

/** The secret of an endpoint: `whsec_` and 32 bytes in base64. */
export function secretOf(master: Uint8Array, endpointId: string, number: number): string {
  return `whsec_${createHmac('sha256', master).update(`webhook ${endpointId} ${number}`).digest('base64')}`
}

/** The secrets in force, the newest first: two for a while after a rotation. */
export function secretsInForce(master: Uint8Array, endpoint: Endpoint, now: Date): string[] {
  const { id, secretNumber, oldSecretUntil } = endpoint
  const isOldValid = oldSecretUntil !== undefined && oldSecretUntil > now
  return [secretNumber, ...(isOldValid ? [secretNumber - 1] : [])].map((number) => secretOf(master, id, number))
}

/**
 * The id of a delivery: the same at every attempt and replay, so that receivers can drop repeats. The stamp tells apart what has one number before and
 * after a restore of an older state.
 */
export function webhookIdOf(endpointId: string, { change, at }: Pick<DeliveredChange, 'change' | 'at'>): string {
  const digest = createHash('sha256').update(`${endpointId} ${change} ${at.getTime()}`).digest('hex')
  return `msg_${digest.slice(0, 32)}`
}

/** Standard Webhooks has payloads below 20 kB. */
const MAX_BODY_BYTES = 20_000

/** What is sent of an event; a test has a kind of its own. */
interface SentEvent extends Pick<DeliveredChange, 'change' | 'at'> {
  readonly kind: EventKind | 'webhook.test'
  /** JSON. */
  readonly data: string
}

/** The body of a delivery. Of a resource that is too long, its lists are left out, then its metadata, and `incomplete` says so. */
function bodyOf({ kind, at, data }: SentEvent): string {
  const head = `{"type":${JSON.stringify(kind)},"timestamp":"${at.toISOString()}"`
  const body = `${head},"data":${data}}`
  if (isShort(body)) return body
  const without = (isLeftOut: (key: string, value: unknown) => boolean) => {
    const rest = JSON.stringify(JSON.parse(data), (key, value) => (isLeftOut(key, value) ? undefined : value))
    return `${head},"incomplete":true,"data":${rest}}`
  }
  const withoutLists = without((_, value) => Array.isArray(value))
  return isShort(withoutLists) ? withoutLists : without((key, value) => Array.isArray(value) || key === 'metadata')
}

const isShort = (body: string) => Buffer.byteLength(body) < MAX_BODY_BYTES

/**
 * Body and headers of an attempt, after Standard Webhooks. Further headers of deliveries belong here.
 *
 * @param now - of the attempt
 */
export function signEvent(endpointId: string, event: SentEvent, secrets: readonly string[], now: Date) {
  const id = webhookIdOf(endpointId, event)
  const body = bodyOf(event)
  const timestamp = String(Math.floor(now.getTime() / 1_000))
  const signatures = secrets.map((secret) => signatureOf(secret, `${id}.${timestamp}.${body}`))
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': 'waybill-webhooks',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
  return { body, headers }
}

function signatureOf(secret: string, content: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`
}

/** Whether a delivery that arrived was signed with a secret. */
export function isSigned(headers: Readonly<Record<string, unknown>>, body: string, secret: string): boolean {
  const content = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`
  const expected = Buffer.from(signatureOf(secret, content))
  return String(headers['webhook-signature'])
    .split(' ')
    .map((each) => Buffer.from(each))
    .some((each) => each.length === expected.length && timingSafeEqual(each, expected))
}
