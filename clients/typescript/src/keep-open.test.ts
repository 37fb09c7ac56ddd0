import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import type { WaybillCallError } from './call-error.ts'
import { keepOpen } from './keep-open.ts'

/** Streams that are opened one after the other. */
function openInOrder(streams: readonly (() => AsyncIterable<string>)[]) {
  const signals: AbortSignal[] = []
  const open = (signal: AbortSignal) => {
    signals.push(signal)
    const next = streams[signals.length - 1]
    if (next === undefined) throw new Error('opened too often')
    return next()
  }
  return { open, signals }
}

async function* giveThenThrow(given: readonly string[], error: Error) {
  yield* given
  throw error
}

async function* giveThenHang(given: readonly string[]) {
  yield* given
  await new Promise(() => undefined)
}

async function take(count: number, messages: AsyncIterable<string>): Promise<string[]> {
  const taken: string[] = []
  for await (const message of messages) {
    taken.push(message)
    if (taken.length === count) break
  }
  return taken
}

describe('keepOpen', () => {
  it('opens again after an error, an end and a silence, and leaves each stream behind it', async () => {
    const errors: WaybillCallError[] = []
    const { open, signals } = openInOrder([
      () => giveThenThrow(['a'], new TypeError('terminated')),
      () => giveThenThrow(['b'], new ConnectError('down', Code.Unavailable)),
      () => giveThenHang(['c']),
      () => giveThenHang(['d']),
    ])
    const options = { silenceMs: 20, onReconnect: (error: WaybillCallError) => void errors.push(error) }
    expect(await take(4, keepOpen(open, options))).toEqual(['a', 'b', 'c', 'd'])
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true, true])
    expect(errors.map(({ message }) => message)).toEqual([
      'terminated',
      'down',
      'nothing came for 20 ms, not even a heartbeat',
    ])
  })

  it.each([
    Code.InvalidArgument,
    Code.NotFound,
    Code.PermissionDenied,
    Code.OutOfRange,
    Code.Unauthenticated,
    Code.Unimplemented,
    Code.FailedPrecondition,
  ])('ends on code %i, which another connection would not change', async (code) => {
    const { open, signals } = openInOrder([() => giveThenThrow(['a'], new ConnectError('no', code))])
    await expect(take(2, keepOpen(open, {}))).rejects.toMatchObject({ name: 'WaybillCallError', message: 'no' })
    expect(signals.length).toBe(1)
  })

  it("ends with the signal's reason", async () => {
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(
      take(
        1,
        keepOpen(() => giveThenHang([]), { signal }),
      ),
    ).rejects.toThrow('enough')
  })
})
