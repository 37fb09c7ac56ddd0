/** How a chain does, in words. */
import { type Chain, Chain_State } from '@waybill/client'
import { formatSpan, toDate } from '../../shared/format-time.ts'
import { chainsTexts } from '../../shared/texts.ts'

/** What the words need of a chain. */
export type JudgedChain = Pick<Chain, 'network' | 'state' | 'lagSeconds' | 'scannedTime'> & {
  readonly follower?: Pick<NonNullable<Chain['follower']>, 'reportedAt'> | undefined
}

export interface ChainWords {
  readonly tone: 'good' | 'busy' | 'warn' | 'bad' | 'quiet'
  readonly title: string
  readonly says: string
}

const tones: Readonly<Record<Chain_State, ChainWords['tone']>> = {
  [Chain_State.STATE_UNSPECIFIED]: 'quiet',
  [Chain_State.NOT_STARTED]: 'warn',
  [Chain_State.CATCHING_UP]: 'busy',
  [Chain_State.FOLLOWING]: 'good',
  [Chain_State.FAILING]: 'bad',
  [Chain_State.STOPPED]: 'bad',
  [Chain_State.NOT_FOLLOWED]: 'bad',
}

/** No configured chain takes longer from block to block. */
const STANDSTILL_SECONDS = 120
/** A process reports every 3 seconds. */
const MAX_REPORT_AGE_SECONDS = 30

export function judgeChain(chain: JudgedChain): ChainWords {
  const { standsStill, hangs, states } = chainsTexts
  const isFollowed = chain.state === Chain_State.FOLLOWING || chain.state === Chain_State.CATCHING_UP
  const reportAge = reportAgeSeconds(chain)
  if (isFollowed && reportAge !== undefined && reportAge > MAX_REPORT_AGE_SECONDS)
    return { tone: 'bad', title: hangs.title, says: hangs.says(formatSpan(reportAge)) }
  if (chain.state === Chain_State.FOLLOWING && (chain.lagSeconds ?? 0) >= STANDSTILL_SECONDS)
    return { tone: 'warn', title: standsStill.title, says: standsStill.says(formatSpan(chain.lagSeconds ?? 0)) }
  return { tone: tones[chain.state], ...states[Chain_State[chain.state] as keyof typeof states] }
}

/** By the clock of the service, which the lag tells: the viewer's may be wrong. */
function reportAgeSeconds({ scannedTime, lagSeconds, follower }: JudgedChain): number | undefined {
  if (scannedTime === undefined || lagSeconds === undefined || follower?.reportedAt === undefined) return undefined
  return Math.round((toDate(scannedTime).getTime() - toDate(follower.reportedAt).getTime()) / 1_000) + lagSeconds
}

/** One sentence over all chains. */
export function judgeChains(chains: readonly JudgedChain[]): ChainWords {
  const { none, noneSays, good, goodSays, some, othersGood, catchingUp } = chainsTexts.overall
  if (chains.length === 0) return { tone: 'quiet', title: none, says: noneSays }
  const judged = chains.map((chain) => ({ name: chain.network, ...judgeChain(chain) }))
  const ill = judged.filter(({ tone }) => tone === 'bad' || tone === 'warn')
  const busy = judged.filter(({ tone }) => tone === 'busy')
  const says = busy.length > 0 ? catchingUp(listNames(busy)) : ill.length > 0 ? othersGood : goodSays
  if (ill.length === 0) return { tone: 'good', title: good(chains.length), says }
  return {
    tone: ill.some(({ tone }) => tone === 'bad') ? 'bad' : 'warn',
    title: some(listNames(ill), ill.length, chains.length),
    says: ill.length === chains.length ? '' : says,
  }
}

function listNames(chains: readonly { readonly name: string }[]): string {
  return new Intl.ListFormat('en', { type: 'conjunction' }).format(chains.map(({ name }) => name))
}
