import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import type { ChainReader, ReadAtBlock } from './chain-reader.ts'

/** The part of a chain reader that calls contracts. */
export type ContractCaller = Pick<ChainReader, 'calls'>

/**
 * Merges calls that are made at the same time: pieces of work that run in parallel, each making one call after another, cost as many exchanges as
 * the longest of them. An equal call is made once.
 *
 * @param signal - ends all calls; a signal given with a single call is ignored
 */
export function gatherCalls(reader: ContractCaller, signal?: AbortSignal): ContractCaller {
  const asked = new Map<string, Promise<RpcAnswer>>()
  let waiting: { readonly call: ReadAtBlock; readonly answer: PromiseWithResolvers<RpcAnswer> }[] = []

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

  function ask(call: ReadAtBlock): Promise<RpcAnswer> {
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
