import { describe, expect, it } from 'vitest'
import { encodeBatch, encodeCall, matchAnswers, readAnswer } from './json-rpc.ts'

const [first, second] = [
  { method: 'eth_chainId', params: [] },
  { method: 'eth_call', params: '[{"to":"0x1"},"latest"]' },
] as const

it('encodes calls with their place as id, params given as a list or as JSON', () => {
  expect(encodeCall(second)).toBe('{"jsonrpc":"2.0","id":0,"method":"eth_call","params":[{"to":"0x1"},"latest"]}')
  expect(JSON.parse(encodeBatch([first, second]))).toEqual([
    { jsonrpc: '2.0', id: 0, ...first },
    { jsonrpc: '2.0', id: 1, method: 'eth_call', params: [{ to: '0x1' }, 'latest'] },
  ])
})

describe('the answers of a batch', () => {
  const match = (...answers: unknown[]) => matchAnswers([first, second], answers, 'node.example')
  const missing = { ok: false, error: { kind: 'INCONSISTENT', detail: 'no answer to eth_call' } }

  it('are matched by id, in whatever order they come', () => {
    const answers = match({ id: 1, result: '0xb' }, { id: 0, result: '0xa' })
    expect(answers).toEqual([
      { ok: true, result: '0xa' },
      { ok: true, result: '0xb' },
    ])
  })

  it.each([
    ['is missing', []],
    ['is null', [null]],
    ['has the id of no call', [{ id: 7, result: '0xb' }]],
  ])('fail only the call of which the answer %s', (_, others) => {
    expect(match({ id: 0, result: '0xa' }, ...others)).toMatchObject([{ ok: true }, missing])
  })
})

describe('an answer', () => {
  const read = (answer: unknown) => readAnswer(first, answer, 'node.example')

  it.each([[null], [false], ['0x1'], [{}]])('may hold any result but none: %j', (result) => {
    expect(read({ id: 0, result })).toEqual({ ok: true, result })
  })

  it('with an error tells its kind, and the node’s words in the message alone', () => {
    const error = { code: -32003, message: 'response too large' }
    expect(read({ id: 0, error })).toMatchObject({
      ok: false,
      error: {
        kind: 'TOO_LARGE',
        detail: 'eth_chainId failed with code -32003',
        message: 'node.example: eth_chainId failed with code -32003: response too large',
        refusal: error,
      },
    })
  })

  it.each([
    ['null beside a result', { result: '0x1', error: null }, { ok: true }],
    ['text', { error: 'no' }, { ok: false, error: { kind: 'REFUSED', refusal: { message: 'no' } } }],
  ])('with an error that is %s', (_, answer, expected) => {
    expect(read(answer)).toMatchObject(expected)
  })

  it.each([
    ['no result', {}],
    ['no object', '0x1'],
  ])('with %s is inconsistent', (_, answer) => {
    expect(read(answer)).toMatchObject({ ok: false, error: { kind: 'INCONSISTENT' } })
  })
})
