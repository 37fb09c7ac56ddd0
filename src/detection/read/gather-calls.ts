import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import type { ChainReader } from './chain-reader.ts'

/** The part of a chain reader that reads contracts. */
export type CallReader = Pick<ChainReader, 'calls'>
type Call = Parameters<CallReader['calls']>[0][number]

/**
 * Puts together what is called at the same time: several pieces of work that go on in parallel, each with a call at a time,
 * cost as many exchanges as the longest of them. An equal call is made once.
 *
 * @param signal - ends all calls; one that is given with a single call is left aside
 */
export function gatherCalls(reader: CallReader, signal?: AbortSignal): CallReader {
  const asked = new Map<string, Promise<RpcAnswer>>()
  let waiting: { readonly call: Call; readonly answer: PromiseWithResolvers<RpcAnswer> }[] = []

  async function sendWaiting(): Promise<void> {
    const sent = waiting
    waiting = []
    try {
      const answers = await reader.calls(
        sent.map(({ call }) => call),
        signal,
      )
      for (const [index, { answer }] of sent.entries()) answer.resolve(answers[index] as RpcAnswer)
    } catch (error) {
      for (const { answer } of sent) answer.reject(error)
    }
  }

  function ask(call: Call): Promise<RpcAnswer> {
    const key = `${call.block} ${call.to} ${call.data}`
    const known = asked.get(key)
    if (known !== undefined) return known
    const answer = Promise.withResolvers<RpcAnswer>()
    asked.set(key, answer.promise)
    if (waiting.length === 0) setImmediate(() => void sendWaiting())
    waiting.push({ call, answer })
    return answer.promise
  }

  return { calls: (calls) => Promise.all(calls.map(ask)) }
}
