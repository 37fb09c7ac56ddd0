import { describe, expect, it } from 'vitest'
import { KNOWN_REFUSALS } from '../../test/support/chains/node-profiles.ts'
import {
  batchHintOf,
  classifyRefusal,
  isAboutLogCount,
  isQuota,
  isRefusedAtAnySize,
  logsHintOf,
  rangeHintOf,
  retryAfterMsOf,
} from './classify-refusal.ts'
import { readRefusal } from './rpc-error.ts'

/** Refusals for what is in a range: another range as wide may be taken. */
const ABOUT_LOGS = /results|logs|response|bytes/i

describe('what a provider says when it refuses logs', () => {
  it.each(KNOWN_REFUSALS)('$who ($source), code $code: $message', ({ code, message, data, details, means }) => {
    const refusal = readRefusal({ code, message, data, details })
    const isOfNode = means === 'POLICY' || means === 'PRUNED'
    expect(classifyRefusal(refusal, 'eth_getLogs')).toBe(isOfNode ? 'REFUSED' : means)
    expect(isRefusedAtAnySize(refusal)).toBe(isOfNode)
    if (means === 'TOO_LARGE')
      expect(isAboutLogCount(refusal)).toBe(ABOUT_LOGS.test(message.replace('eth_getLogs', '')))
  })

  it.each([
    ['', -32005, 'TOO_LARGE'],
    ['nope', -32000, 'REFUSED'],
    ['execution reverted: No data present', 3, 'REVERTED'],
    ['execution reverted: rate limit', -32000, 'REVERTED'],
    ['slow down', 429, 'RATE_LIMITED'],
    ['header not found', -32000, 'REFUSED'],
  ])('%j with code %s is %s', (message, code, kind) => {
    expect(classifyRefusal({ message, code }, 'eth_getLogs')).toBe(kind)
  })
})

describe('what a node says when it refuses a receipt', () => {
  it.each([
    ['response too large', -32003, 'TOO_LARGE'],
    ['', -32005, 'RATE_LIMITED'],
    ['Request timeout on the free tier', 30, 'TIMEOUT'],
    ['no backend is currently healthy to serve traffic', -32011, 'UNREACHABLE'],
    ['invalid opcode: INVALID', -32015, 'REVERTED'],
    ['missing trie node', -32000, 'REFUSED'],
    ['block range is too wide', -32000, 'REFUSED'],
  ])('%j with code %s is %s: what is too large is never counted', (message, code, kind) => {
    expect(classifyRefusal({ message, code }, 'eth_getTransactionReceipt')).toBe(kind)
  })
})

describe('a hint in a refusal', () => {
  it.each<[string, number | undefined]>([
    ['eth_getLogs is limited to a 10,000 range', undefined],
    ['eth_getLogs is limited to a 1,000 range', 1_000],
    ['range 2000 exceeds limit of 1000', 1_000],
    ['range is too large, max is 1k blocks', 1_000],
    ['requested too many blocks from 1 to 1999, maximum is set to 1024', 1_024],
    ['this block range should work: [0x64, 0x6d].', 10],
    ['retry with the range 100-149', 50],
    ['query returned more than 1000 results', undefined],
    ['block range is too wide', undefined],
  ])('%j: blocks of a range of 2,000: %s', (message, blocks) => {
    expect(rangeHintOf({ message }, 2_000)).toBe(blocks)
  })

  it.each<[string, number | undefined]>([
    ['query returned more than 10000 results', 10_000],
    ['Too many logs requested. Max logs per response is 20000.', 20_000],
    ['logs matched by query exceeds limit of 10000', 10_000],
    ['query returns too many logs, narrow your filter: 20000', 20_000],
    ['block range exceeds limit of 1000', undefined],
  ])('%j: logs: %s', (message, logs) => {
    expect(logsHintOf({ message })).toBe(logs)
  })

  it.each<[string, number | undefined]>([
    ['Batch of more than 3 requests are not allowed', 3],
    ['batch limit 100 exceeded (can increase by --rpc.batch.limit). Requested batch of size: 101', 100],
    ['batch too large', undefined],
  ])('%j: calls of a batch: %s', (message, calls) => {
    expect(batchHintOf({ message })).toBe(calls)
  })

  it.each<[string, string | undefined, number | undefined]>([
    ['retry in 10s', undefined, 10_000],
    ['retry in 10m0s', undefined, 600_000],
    ['try again in 1h', undefined, 3_600_000],
    ['Rate limit exceeded. Please retry after 1 second.', undefined, 1_000],
    ['retry after 2.5s', undefined, 2_500],
    ['slow down', '{"rate":{"backoff_seconds":30}}', 30_000],
    ['slow down', undefined, undefined],
  ])('%j, %j: a wait of %s ms', (message, details, waitMs) => {
    expect(retryAfterMsOf({ message, details })).toBe(waitMs)
  })

  it.each([
    ['daily request count exceeded, request rate limited', true],
    ['Monthly capacity limit exceeded', true],
    ['compute unit quota exceeded', true],
    ['Payment Required', true],
    ['15/second request limit reached', false],
    ['You have surpassed your allowed throughput limit.', false],
  ])('%j is of a quota: %s', (message, expected) => {
    expect(isQuota({ message })).toBe(expected)
  })
})
