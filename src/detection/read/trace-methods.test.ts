import { describe, expect, it } from 'vitest'
import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import {
  afterFailure,
  afterUnsupported,
  isNotKnownYet,
  isStateGone,
  type NodeTraces,
  UNTRIED_NODE,
  whyUnsupported,
} from './trace-reader.ts'

const MINUTE = 60_000
const NOW = 1_000_000
const answer = (result: unknown): RpcAnswer => ({ ok: true, result })
/** The words of a host are not those of its node. */
const host = 'archive-module.example'
const refusal = (message: string, code = -32000): RpcAnswer => ({
  ok: false,
  error: new RpcError('REFUSED', `debug_traceTransaction failed with code ${code}`, {
    host,
    refusal: { code, message },
  }),
})
const frame = { type: 'CALL', from: '0x01', to: '0x02', value: '0x1', input: '0x' }

describe('a node', () => {
  it.each<[failures: number, minutes: number]>([
    [0, 1],
    [1, 2],
    [5, 32],
    [6, 60],
    [20, 60],
  ])('that failed %i times before is left alone for %i minutes', (failures, minutes) => {
    const after = afterFailure({ ...UNTRIED_NODE, failures }, NOW)
    expect(after).toEqual({ ...UNTRIED_NODE, failures: failures + 1, restUntilMs: NOW + minutes * MINUTE })
  })

  it('that lacks one method is asked for the other, and then left alone for an hour', () => {
    const second: NodeTraces = { ...UNTRIED_NODE, method: 'trace_transaction' }
    expect(afterUnsupported(UNTRIED_NODE, NOW)).toEqual(second)
    expect(afterUnsupported({ ...second, failures: 3 }, NOW)).toEqual({
      ...UNTRIED_NODE,
      restUntilMs: NOW + 60 * MINUTE,
    })
  })
})

describe('what answers say about a node', () => {
  const trace = answer(frame)
  it.each<[string, readonly RpcAnswer[], isUnsupported: boolean]>([
    ['a trace', [trace], false],
    ['a trace and a missing method', [trace, refusal('method not found')], false],
    ['no method', [refusal('the method debug_traceTransaction does not exist')], true],
    ['no method, by the code alone', [refusal('', -32601)], true],
    ['no tracer', [refusal('tracer callTracer is unknown')], true],
    ['another plan', [refusal('upgrade your plan')], true],
    ['a list of EVM steps', [answer({ structLogs: [] })], true],
    ['an unknown transaction', [answer(null)], false],
    ['no state', [refusal('missing trie node')], false],
    ['another error', [refusal('execution timeout')], false],
  ])('%s', (_, answers, isUnsupported) => {
    expect(whyUnsupported(answers, 'debug_traceTransaction') !== undefined).toBe(isUnsupported)
  })

  it.each<[string, RpcAnswer, isNotKnownYet: boolean, isStateGone: boolean]>([
    ['a trace', trace, false, false],
    ['null', answer(null), true, false],
    ['an empty list', answer([]), true, false],
    ['that it does not know the transaction', refusal('transaction not found'), true, false],
    ['that it lacks the state', refusal('required historical state unavailable'), false, true],
    ['another error', refusal('execution timeout'), false, false],
  ])('%s', (_, given, notKnownYet, stateGone) => {
    expect([isNotKnownYet(given), isStateGone(given)]).toEqual([notKnownYet, stateGone])
  })
})
