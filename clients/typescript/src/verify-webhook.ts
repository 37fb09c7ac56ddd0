/** Checks the deliveries of webhooks, with Web Crypto alone: in Node, in browsers and in edge runtimes. */

/** What a webhook delivers. */
export interface WebhookEvent {
  /** `payment.added`, `payment.updated`, `payment.removed`, `request.updated`, or `webhook.test`. */
  readonly type: string
  /** When the change was made. */
  readonly timestamp: string
  /** The payment or the request, as the JSON API has it. */
  readonly data: Readonly<Record<string, unknown>>
  /** The lists of `data` are left out, or its metadata too, because they are too long: read the resource. */
  readonly incomplete?: boolean
  /** The header `webhook-id`: the same for repeats of a delivery, so that you can drop them. */
  readonly id: string
}

/** The delivery was not signed with the secret, or not lately: answer 400 and do nothing. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
}

type HeaderSource = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

/** Clocks differ, and an old delivery may have been recorded by somebody. */
const TOLERANCE_SECONDS = 300

/**
 * Checks a delivery after Standard Webhooks.
 *
 * @param body - exactly as it arrived: the text or the bytes, not parsed
 * @param headers - of the request; names in any case
 * @param secrets - `whsec_…`; during a rotation the old one too
 * @throws WebhookVerificationError
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: HeaderSource,
  secrets: string | readonly string[],
): Promise<WebhookEvent> {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    readHeader(headers, name),
  )
  if (!id || !timestamp || !signatures) throw new WebhookVerificationError('a header of the webhook is missing')
  const ageSeconds = Date.now() / 1_000 - Number(timestamp)
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(ageSeconds) > TOLERANCE_SECONDS) {
    throw new WebhookVerificationError('webhook-timestamp is more than 5 minutes off: check the clock')
  }
  const content = await new Blob([`${id}.${timestamp}.`, body as BlobPart]).arrayBuffer()
  const given = signatures.split(' ').flatMap((each) => (each.startsWith('v1,') ? [each.slice(3)] : []))
  for (const secret of typeof secrets === 'string' ? [secrets] : secrets) {
    const key = await importKey(secret)
    for (const signature of given) {
      const bytes = bytesOf(signature)
      // Web Crypto compares in constant time.
      if (bytes !== undefined && (await crypto.subtle.verify('HMAC', key, bytes, content))) return read(body, id)
    }
  }
  throw new WebhookVerificationError('no signature fits: check the secret, and that the body is as it arrived')
}

function read(body: string | Uint8Array, id: string): WebhookEvent {
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
  return { ...(JSON.parse(text) as Omit<WebhookEvent, 'id'>), id }
}

function readHeader(headers: HeaderSource, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined
  const value = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return typeof value === 'object' ? value[0] : value
}

function importKey(secret: string): Promise<CryptoKey> {
  const bytes = secret.startsWith('whsec_') ? bytesOf(secret.slice('whsec_'.length)) : undefined
  if (bytes === undefined) throw new WebhookVerificationError('the secret is not whsec_ and base64')
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
