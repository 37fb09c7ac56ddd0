import { expect, it } from 'vitest'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { encodeUint } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { openNodes } from '../read/chain-nodes.ts'
import { judgeConversion } from './conversion-rates.ts'

const NOW_SEC = 1_700_000_000
const conversion = {
  path: '0x00000000000000000000000000000000000000c1',
  paths: [{ from: 'EUR', via: [], token: 'USDC', heartbeatSeconds: 3_600 }],
} as unknown as NonNullable<ChainConfig['conversion']>
const asked = {
  from: 'EUR',
  token: { symbol: 'USDC', address: '0x00000000000000000000000000000000000000d1' as Address },
  invoiced: 100n,
  paid: 110n,
  blockNumber: 7,
  timestampSec: NOW_SEC,
} as const

/** Nodes of which each gives the same answer to every call. */
function nodesThat(...answers: readonly RpcAnswer[]) {
  const rpcUrls = answers.map((_, node) => `http://${node}.example`)
  const nodes = openNodes({ rpcUrls, chainId: 1 }, { clock: () => new Date() })
  const ask = async (node: number, calls: readonly unknown[]) => calls.map(() => answers[node] as RpcAnswer)
  return { ...nodes, ask }
}
const pruned: RpcAnswer = { ok: false, error: new RpcError('REFUSED', 'missing trie node') }
const rate = (due: bigint, oldestSec: number): RpcAnswer => ({
  ok: true,
  result: `0x${encodeUint(due)}${encodeUint(oldestSec)}`,
})

it.each([
  ['counts by a fresh rate', [rate(110n, NOW_SEC)], 'COUNTS'],
  ['is off by more than 2 %', [rate(113n, NOW_SEC)], 'RATE_OFF'],
  ['is stale', [rate(110n, NOW_SEC - 4_000)], 'STALE_RATE'],
  ['is read from the next node where the first has pruned the block', [pruned, rate(110n, NOW_SEC)], 'COUNTS'],
  ['is unknown where every node has pruned the block', [pruned, pruned], 'UNREADABLE'],
] as const)('a conversion %s', async (_, answers, verdict) => {
  expect(await judgeConversion(nodesThat(...answers), { conversion }, asked)).toBe(verdict)
})
