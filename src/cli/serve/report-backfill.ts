import type { Writable } from 'node:stream'
import { describeBackfill } from '../../detection/backfill/backfill-progress.ts'
import type { ChainStatus } from '../../detection/run/chain-status.ts'

const REPORT_EVERY_MS = 15_000

/** Writes a line for each chain whose old blocks are being read, a few times a minute, to a terminal. @returns ends it */
export function reportBackfill(
  stderr: Writable & { readonly isTTY?: boolean },
  status: () => ChainStatus[],
): () => void {
  if (stderr.isTTY !== true) return () => {}
  const timer = setInterval(() => {
    for (const { network, backfill } of status()) {
      if (backfill !== undefined) stderr.write(`${describeBackfill(network, backfill)}\n`)
    }
  }, REPORT_EVERY_MS)
  return () => clearInterval(timer)
}
