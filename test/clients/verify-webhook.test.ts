import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { verifyWebhook, WebhookVerificationError } from '../../clients/typescript/src/verify-webhook.ts'

// Signed by the published library of Standard Webhooks.

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`
const body = '{"type":"payment.added","timestamp":"2026-11-28T08:00:00.000Z","data":{"id":"é"}}'

function sign(by = secret, at = new Date(), text = body) {
  return {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': new Webhook(by).sign('msg_1', at, text),
  }
}

test('what the library has signed is read, from a text or bytes, and headers of any kind', async () => {
  const event = { type: 'payment.added', timestamp: '2026-11-28T08:00:00.000Z', data: { id: 'é' }, id: 'msg_1' }
  expect(await verifyWebhook(body, sign(), secret)).toEqual(event)
  expect(await verifyWebhook(new TextEncoder().encode(body), new Headers(sign()), [other, secret])).toEqual(event)
  const upper = Object.fromEntries(Object.entries(sign()).map(([name, value]) => [name.toUpperCase(), [value]]))
  expect(await verifyWebhook(body, upper, secret)).toEqual(event)
})

test('one of several signatures is enough, as during a rotation', async () => {
  const both = `${sign(other)['webhook-signature']} v1a,AAAA v1,!! ${sign()['webhook-signature']}`
  for (const each of [secret, other]) {
    expect((await verifyWebhook(body, { ...sign(), 'webhook-signature': both }, each)).id).toBe('msg_1')
  }
})

const minutes = (n: number) => new Date(Date.now() + n * 60_000)

test.each([
  ['another body', `${body} `, sign(), secret],
  ['another secret', body, sign(other), secret],
  ['another id', body, { ...sign(), 'webhook-id': 'msg_2' }, secret],
  ['a later stamp', body, { ...sign(), 'webhook-timestamp': sign(secret, minutes(1))['webhook-timestamp'] }, secret],
  ['an old delivery', body, sign(secret, minutes(-6)), secret],
  ['one of the future', body, sign(secret, minutes(6)), secret],
  ['no signature', body, { ...sign(), 'webhook-signature': '' }, secret],
  ['a stamp that is no number', body, { ...sign(), 'webhook-timestamp': 'NaN' }, secret],
  ['no headers', body, {}, secret],
  ['a secret of another form', body, sign(), 'secret'],
  ['no secret', body, sign(), []],
])('%s is refused', async (_, text, headers, secrets) => {
  await expect(verifyWebhook(text, headers, secrets)).rejects.toThrow(WebhookVerificationError)
})
