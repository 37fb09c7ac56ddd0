import { describe, expect, it } from 'vitest'
import { Code } from '../../gen/google/rpc/code_pb.js'
import { comments as generated } from '../../gen/payments/v1/comments.js'
import { reasons } from '../../src/errors/reasons.ts'

/** The comments of `payments.v1`, which are its API reference, by the names of what they describe: `Payment.Status.PENDING`. */
const comments: ReadonlyMap<string, string> = new Map(
  Object.entries(generated).map(([name, comment]) => [name.replace('payments.v1.', ''), comment.replaceAll('\n', ' ')]),
)

const FILTERED = ['SearchPaymentsRequest', 'SummarizePaymentsRequest', 'ExportPaymentsRequest', 'WatchPaymentsRequest']
const ROUTED = ['GetPaymentRoutesRequest', 'StreamPaymentRoutesRequest', 'GetPaymentCalldataRequest']

describe('the comments of payments.v1', () => {
  it('describe every service, method, message, field, enum and value in sentences', () => {
    const bad = [...comments].filter(([, comment]) => !/^["`A-Z0-9].*[.:]$/.test(comment))
    expect(comments.size).toBeGreaterThan(300)
    expect(bad).toEqual([])
  })

  it.each([
    ['the filters of payments', FILTERED],
    ['the questions for routes', ROUTED],
    ['the filters of requests', ['ListPaymentRequestsRequest', 'SummarizePaymentRequestsRequest']],
  ])('say the same of the same field in %s', (_, [first = '', ...others]) => {
    const names = [...comments.keys()].flatMap((name) => name.split(`${first}.`)[1] ?? [])
    for (const other of others) {
      const shared = names.filter((name) => comments.has(`${other}.${name}`))
      expect(shared.length).toBeGreaterThan(4)
      for (const name of shared) {
        expect(comments.get(`${other}.${name}`)).toBe(comments.get(`${first}.${name}`))
      }
    }
  })

  it('name only reasons of the table and values of enums', () => {
    const words = new Set([...comments.values()].flatMap(wordsInCapitals))
    const values = [...comments.keys()].map((name) => name.slice(name.lastIndexOf('.') + 1))
    const known = new Set([...Object.keys(reasons), ...Object.keys(Code), ...values, ...ROUTE_IDS])
    expect([...words].filter((word) => !known.has(word))).toEqual([])
  })
})

/** Forms and examples of a route's id. */
const ROUTE_IDS = [
  'REQUEST_NETWORK_PAYMENT',
  'SRCCHAIN_DSTCHAIN_SRCTOKEN_DSTTOKEN',
  'ARBITRUM_BASE_USDT_USDC',
  'BASE_BASE_DAI_USDC',
]

function wordsInCapitals(comment: string): readonly string[] {
  return comment.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g) ?? []
}
