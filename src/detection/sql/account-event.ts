import { hexToBytes } from '../../domain/hex.ts'
import type { EventPlace } from '../match/detected.ts'

/** One event of one chain, for one account. */
export interface AccountEvent extends EventPlace {
  readonly accountId: number
  /** CAIP-2. */
  readonly chainId: string
}

/** The columns that identify the event in every table of an account's events. */
export function columnsOf({ accountId, chainId, txHash, eventIndex }: AccountEvent) {
  return { account_id: accountId, chain_id: chainId, tx_hash: hexToBytes(txHash), event_index: eventIndex }
}
