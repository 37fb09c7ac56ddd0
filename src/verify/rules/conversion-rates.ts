import type { ChainConfig } from '../../chains/chains-file.ts'
import { addressesOfPath, findConversionPath, maxRateAgeSeconds } from '../../chains/conversion-path.ts'
import { readConversion } from '../../contracts/contract-reads.ts'
import { splitWords, toQuantity, uintOf } from '../../contracts/words.ts'
import type { Token } from '../../domain/currency.ts'
import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import { askUntil, type ChainNodes } from '../read/chain-nodes.ts'

/** A conversion whose rate decides whether it counts. */
export interface RatedConversion {
  /** ISO 4217 code of the invoice currency. */
  readonly from: string
  /** What was paid with. */
  readonly token: Pick<Token, 'symbol' | 'address'>
  /** In the invoice currency, base units. */
  readonly invoiced: bigint
  /** What the proxy's event says was paid, base units. */
  readonly paid: bigint
  readonly blockNumber: number
  readonly timestampSec: number
}

/** `UNREADABLE`: no node still has the state of that block, so the rate at that time is unknown. */
export type RateVerdict = 'COUNTS' | 'STALE_RATE' | 'RATE_OFF' | 'UNREADABLE'

/** A conversion counts with at least 98 % of what our path's rate comes to. */
const MIN_SHARE = 98n

/**
 * Judges a conversion by the rate of our configured path at its block or the one before, whichever favours the payer, as long as the feeds
 * of that rate were fresh.
 *
 * @throws RpcError when no node answers
 */
export async function judgeConversion(
  nodes: ChainNodes,
  { conversion }: Pick<ChainConfig, 'conversion'>,
  asked: RatedConversion,
): Promise<RateVerdict> {
  const path = findConversionPath(conversion, asked.from, asked.token)
  if (conversion === undefined || path === undefined) return 'RATE_OFF'
  const { to, data } = readConversion(conversion.path, asked.invoiced, addressesOfPath(path, asked.token))
  const calls = [asked.blockNumber, asked.blockNumber - 1].map((block) => ({
    method: 'eth_call',
    params: [{ to, data }, toQuantity(block)],
  }))
  const answers = await askUntil(nodes, calls, haveState)
  if (answers === undefined) return 'UNREADABLE'
  let isStale = false
  for (const answer of answers) {
    if (!answer.ok) continue
    const words = splitWords(String(answer.result).slice(2), 2)
    if (words === undefined) continue
    const [due, oldest] = words.map(uintOf) as [bigint, bigint]
    if (asked.paid * 100n < due * MIN_SHARE) continue
    if (asked.timestampSec - Number(oldest) <= maxRateAgeSeconds(path)) return 'COUNTS'
    isStale = true
  }
  return isStale ? 'STALE_RATE' : 'RATE_OFF'
}

/** Whether a node has the state of the blocks: a reverted call is an answer. */
function haveState(answers: readonly RpcAnswer[]): boolean {
  return answers.every((answer) => answer.ok || answer.error.kind === 'REVERTED')
}
