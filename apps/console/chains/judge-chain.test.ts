import { Chain_State } from '@waybill/client'
import { expect, it } from 'vitest'
import { type JudgedChain, judgeChain, judgeChains } from './judge-chain.ts'

const at = (seconds: number) =>
  ({ $typeName: 'google.protobuf.Timestamp', seconds: BigInt(seconds), nanos: 0 }) as const
const following: JudgedChain = {
  network: 'BASE',
  state: Chain_State.FOLLOWING,
  lagSeconds: 9,
  scannedTime: at(1_000),
  follower: { reportedAt: at(1_008) },
}
const stopped: JudgedChain = { ...following, network: 'BSC', state: Chain_State.STOPPED }
const catchingUp: JudgedChain = { ...following, network: 'POLYGON', state: Chain_State.CATCHING_UP }

it.each<[string, JudgedChain, string, string]>([
  ['follows its blocks', following, 'good', 'Following'],
  ['has no new block for minutes', { ...following, lagSeconds: 300, scannedTime: at(708) }, 'warn', 'No new blocks'],
  [
    'is far behind while it catches up',
    { ...catchingUp, lagSeconds: 9_000, scannedTime: at(-7_992) },
    'busy',
    'Catching up',
  ],
  ['has a process that reports no longer', { ...following, follower: { reportedAt: at(978) } }, 'bad', 'No report'],
  ['is stopped', stopped, 'bad', 'Stopped'],
  ['has not been read', { network: 'BASE', state: Chain_State.NOT_STARTED }, 'warn', 'Not started'],
])('says that a chain %s', (_, chain, tone, title) => {
  expect(judgeChain(chain)).toMatchObject({ tone, title })
})

it.each<[readonly JudgedChain[], string, string, string]>([
  [[following, following], 'good', 'All 2 chains are followed', 'Each new block is read as it comes.'],
  [
    [following, catchingUp],
    'good',
    'All 2 chains are followed',
    'Old blocks are still read on POLYGON; new payments are seen meanwhile.',
  ],
  [[following, stopped], 'bad', '1 of 2 chains needs attention: BSC', 'The others are read as their blocks come.'],
  [[stopped], 'bad', 'BSC needs attention', ''],
  [
    [],
    'quiet',
    'No chain is followed',
    'Chains without payment contracts are left out. Configure one in the chains file.',
  ],
])('says how all chains do', (chains, tone, title, says) => {
  expect(judgeChains(chains)).toEqual({ tone, title, says })
})
