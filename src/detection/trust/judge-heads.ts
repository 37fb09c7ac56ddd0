import type { StoredBlock } from '../sql/chain-state-repository.ts'
import type { NodeFault } from './set-aside.ts'

/** Decides which nodes are late or serve another chain, by the head and the final block of each. No I/O. */

type HeadFault = Extract<NodeFault, 'STALE' | 'OTHER_CHAIN'>

/** What a node says of itself. */
export interface NodeHead {
  readonly chainId: number
  readonly number: number
  readonly timestampSec: number
  /** Why it was refused, where it serves another chain; the other fields are then unknown. */
  readonly otherChain?: string | undefined
  /** The hash of the last final block that was read; absent where the node does not have it. */
  readonly finalHash?: string | undefined
}

/** A head is behind another if it is this much lower and this much older: nodes differ by some blocks for some seconds. */
const MAX_LAG_BLOCKS = 10
const MAX_LAG_SEC = 60
/** A head is old if it is older than this many blocks take, and than this. */
const MAX_AGE_BLOCKS = 20
const MAX_AGE_SEC = 300

/** What is known of a chain whose nodes are compared. */
interface Known {
  readonly chainId: number
  readonly final: StoredBlock
  readonly blockTimeSeconds: number
  readonly nowSec: number
}

/** Compares the nodes of a chain with each other and with what was read. @returns the fault of each node that has one */
export function judgeHeads(
  heads: readonly (NodeHead | undefined)[],
  { chainId, final, blockTimeSeconds, nowSec }: Known,
): Map<number, { readonly fault: HeadFault; readonly reason: string }> {
  const faults = new Map<number, { fault: HeadFault; reason: string }>()
  const ofChain = heads.filter((head) => head?.chainId === chainId)
  const isKept = ofChain.some((head) => head?.finalHash === final.hash)
  const best = ofChain.reduce((a, b) => ((b?.number ?? 0) > (a?.number ?? 0) ? b : a), ofChain[0])
  for (const [index, head] of heads.entries()) {
    if (head === undefined) continue
    const { number, timestampSec, finalHash } = head
    const behind = (best?.number ?? number) - number
    const isLate = behind > MAX_LAG_BLOCKS && (best?.timestampSec ?? 0) - timestampSec >= MAX_LAG_SEC
    const ageSec = nowSec - timestampSec
    if (head.chainId !== chainId) {
      const reason = head.otherChain ?? `it serves chain ${head.chainId}, not ${chainId}`
      faults.set(index, { fault: 'OTHER_CHAIN', reason })
    } else if (isKept && finalHash !== undefined && finalHash !== final.hash) {
      const reason = `its block ${final.number} is ${finalHash}; that of the chain is ${final.hash}`
      faults.set(index, { fault: 'OTHER_CHAIN', reason })
    } else if (isLate) {
      faults.set(index, {
        fault: 'STALE',
        reason: `its head ${number} is ${behind} blocks behind that of another node`,
      })
    } else if (ageSec > Math.max(MAX_AGE_SEC, MAX_AGE_BLOCKS * blockTimeSeconds)) {
      faults.set(index, { fault: 'STALE', reason: `its head ${number} is ${Math.round(ageSec)} s old` })
    }
  }
  return faults
}
