import { expect, it } from 'vitest'
import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import { openNodes } from './chain-nodes.ts'
import { readSentCall } from './read-sent-call.ts'

/** Nodes of which each gives the same answer to every call. */
function nodesThat(...answers: readonly RpcAnswer[]) {
  const rpcUrls = answers.map((_, node) => `http://${node}.example`)
  const ask = async (node: number, calls: readonly unknown[]) => calls.map(() => answers[node] as RpcAnswer)
  return { ...openNodes({ rpcUrls, chainId: 1 }, { clock: () => new Date() }), ask }
}

const unknown: RpcAnswer = { ok: true, result: null }
const known: RpcAnswer = { ok: true, result: { input: '0xab', value: '0x7', hash: '0x01' } }

it.each([
  ['from the first node that has it', [unknown, known], { input: '0xab', value: 7n }],
  ['as unknown where no node has it', [unknown, unknown], undefined],
] as const)('a transaction is read %s', async (_, answers, expected) => {
  expect(await readSentCall(nodesThat(...answers), '0x01')).toEqual(expected)
})
